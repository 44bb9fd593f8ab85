// case: ERR-03
// expect: ok
// value: ["server-unavailable",false]
try {
  await box.unreachable({});
} catch (e) {
  const text = [e.message, e.stack, JSON.stringify(e.content ?? null), String(e)].join(" ");
  return [e.code, /https?:|\/srv|token|10\.0\.|Bearer/.test(text)];
}
