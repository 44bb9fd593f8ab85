const total = add(1, factor);
const factor = 2;
function add(a, b) { return a + b; }
return total;
