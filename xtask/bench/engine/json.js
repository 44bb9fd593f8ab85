const rows = [];
for (let id = 0; id < 8_000; id++) {
  rows.push({ id, name: "user " + id, tags: ["a", "b"], address: { city: "Bern", zip: 3000 + (id % 99) }, ok: id % 3 === 0 });
}
const text = JSON.stringify(rows);
const back = JSON.parse(text);
return [text.length, back[7_999].name];
