let rows = 0;
for (let i = 0; i < input.count; i++) {
  const page = await bench.lookup(input.args);
  rows += page.items.length;
}
return rows;
