const fs = [];
for (let i = 0; i < 3; i++) { fs.push(() => i); continue; }
for (let i = 0; i < 5; i++) { fs.push(() => i); if (i % 2) continue; fs.push(() => i * 10); }
outer: for (let i = 0, j = 9; i < 3; i++, j--) {
  fs.push(() => i + j * 100);
  for (let k = 0; ; k++) { fs.push(() => [i, k]); if (k) continue outer; if (i > 1) break outer; }
}
for (let i = 0; ; ) { fs.push(() => i); if (i++ < 2) continue; break; }
for (let i = 0; i < 3; ) { fs.push(() => i++); if (fs[fs.length - 1]() < 2) continue; }
for (let i = 0; i < 2; i++) { try { fs.push(() => i); continue; } finally { fs.push(() => -i); } }
for (let i = 0; i < 2; i++) switch (i) { case 0: fs.push(() => i); continue; default: fs.push(() => i); }
const later = [];
for (let i = 0; i < 3; i++) { later.push((async () => { await null; return i; })()); continue; }
for (let of = 0; of < 2; of++) { for (const x of [of]) { fs.push(() => [x, of]); if (x) continue; } }
log(fs.map((f) => f()), await Promise.all(later));
