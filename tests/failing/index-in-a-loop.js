const rows = [{ tags: ['a'] }, { tags: ['b'] }, {}];
const all = [];
for (let i = 0; i < rows.length; i++) {
  all.push(rows[i].tags[0]);
}
return all;
