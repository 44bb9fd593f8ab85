const rows = [{ id: 1 }, null];
return rows.map(({ id }) => id);
