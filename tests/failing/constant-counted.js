const count = 0;
["a", "b"].forEach(() => {
  count++;
});
return count;
