export default async function main() {
  const { items } = await files.list({ path: "/" });
  return items.map((item) => item.name);
}
