const nameOf = ({ id, user: { name }, ...rest }) => name + id + rest.size;
const row = { id: 1, user: null };
return nameOf(row);
