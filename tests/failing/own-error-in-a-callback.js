const check = (row) => {
  if (!row.id) throw new TypeError(`row ${row.name} has no id`);
};
[{ id: 1 }, { name: 'b' }].forEach((row) => check(row));
