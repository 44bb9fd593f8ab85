async (input) => {
  return input.filter.level;
}
