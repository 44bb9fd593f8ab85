const total = {
  valueOf() {
    return +total;
  },
};
return total * 2;
