const rows = [1, 2, 3];
return rows.length();
