async function* pages() {
  yield 1;
  await new Promise(() => {});
}
const all = [];
for await (const page of pages()) all.push(page);
return all;
