// case: STK-01
// expect: limit:stack | script_error
const odd = (n) => even(n + 1);
const even = (n) => odd(n + 1);
return odd(0);
