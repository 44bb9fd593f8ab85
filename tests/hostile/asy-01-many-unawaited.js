// case: ASY-01
// expect: ok | limit:calls
// calls: box.write=0
for (let i = 0; i < 500; i++) box.write({ i });
return 1;
