function check(count) {
  if (count > 3) throw new Error(`too many: ${count}`);
  return count;
}
return check(5);
