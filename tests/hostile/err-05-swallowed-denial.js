// case: ERR-05
// expect: ok
// value: "went on"
// calls: box.forbidden=0
try {
  await box.forbidden({});
} catch {}
return "went on";
