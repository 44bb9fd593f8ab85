const row = { id: 1, name: "user 1", tags: ["a", "b"], address: { city: "Bern", zip: 3001 }, ok: true, ms: 12.75 };
const rows = new Array(8_000).fill(row);
let length = 0;
for (let turn = 0; turn < 3; turn++) length += JSON.stringify(rows).length;
return length;
