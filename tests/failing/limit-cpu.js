// run with --limit cpu=300ms
let n = 27;
while (n !== 0) {
  n = n % 2 ? n * 3 + 1 : n / 2;
}
return n;
