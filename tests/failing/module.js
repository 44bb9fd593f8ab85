export default async (input) => {
  const found = await demo.logs_query({});
  return found.lines.length;
};
