// case: PRS-01
// expect: ok | engine_fault | limit:stack | script_error
try {
  return new RegExp("(".repeat(50_000) + ")".repeat(50_000)).test("");
} catch (e) {
  return e.name;
}
