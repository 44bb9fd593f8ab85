const nameOf = ({ user: { name } }) => name;
return [{ user: { name: "a" } }, {}].map(nameOf);
