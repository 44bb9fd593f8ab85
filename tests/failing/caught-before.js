const a = {};
try { a.b.c; } catch (error) { console.log(error.name); }
const rows = { first: {} };
return rows.second.third;
