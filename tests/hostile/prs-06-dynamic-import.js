// case: PRS-06
// expect: ok
// value: "refused"
try {
  await import("fs");
  return "imported";
} catch {
  return "refused";
}
