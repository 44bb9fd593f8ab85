const query = { where() { return this }, then() {} };
return await query.where();
