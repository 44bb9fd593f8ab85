const Kind = { name: "Kind" };
return {} instanceof Kind;
