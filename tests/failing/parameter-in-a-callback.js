const rows = [{ id: 1 }, undefined];
return rows.map(({ id }) => id);
