let total = 0n;
for (const it of [{ n: 1 }]) {
  total += it.n;
}
return total
