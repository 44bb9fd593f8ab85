const found = await demo.logs_query({ level: 'error' });
const rows = found.rows;
const more = 1;
return rows.length + more;
