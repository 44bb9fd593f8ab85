const negate = (it) => {
  return-it;
};
return negate(Symbol("a"));
