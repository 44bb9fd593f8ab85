const load = async (name) => {
  throw new Error(`no answer from ${name}`);
};
return await Promise.any(["a", "b", "c", "d", "e"].map((name) => load(name)));
