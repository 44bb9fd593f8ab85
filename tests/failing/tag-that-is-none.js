const sql = "select";
return sql`1 + ${1}`;
