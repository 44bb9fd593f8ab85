// case: PRS-06
// expect: ok
// value: "refused"
try {
  await import("data:text/javascript,export default 1");
  return "imported";
} catch {
  return "refused";
}
