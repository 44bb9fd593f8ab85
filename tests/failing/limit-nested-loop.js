// run with --timeout 400ms
const rows = Array.from({ length: 1000 }, (_, i) => ({ id: i }));
let pairs = 0;
for (const row of rows) {
  for (let other = 0; other < rows.length; pairs++) {
    other = row.id === other ? other : -1;
  }
}
return pairs;
