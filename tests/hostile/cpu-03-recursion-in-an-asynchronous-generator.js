// case: CPU-03
// expect: limit:stack
// why: an error that nobody can catch would leave a generator that is waited for
async function* down() {
  const deeper = () => 1 + deeper();
  yield deeper();
}
for await (const depth of down()) depth;
