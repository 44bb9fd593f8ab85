const load = async () => ({ rows: [1, 2, 3] });
const data = load();
return data.rows.length;
