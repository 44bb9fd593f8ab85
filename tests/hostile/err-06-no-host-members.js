// case: ERR-06
// expect: ok
// value: ["code","content","message","retryable","structuredContent","tool"]
try {
  await box.fail({});
} catch (error) {
  return Reflect.ownKeys(error)
    .map(String)
    .filter((k) => !["stack", "name"].includes(k))
    .sort();
}
