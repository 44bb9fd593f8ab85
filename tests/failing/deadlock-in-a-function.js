const gate = (n) => new Promise((open) => {
  if (n > 9) open();
});
async function pass(n) {
  await gate(n);
  return n;
}
const first = await pass(10);
const second = await pass(first - 1);
return second;
