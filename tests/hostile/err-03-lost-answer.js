// case: ERR-03
// expect: ok
// value: ["outcome-unknown",false]
// why: the text of a broken transport stays on the host
try {
  await box.lost({});
} catch (e) {
  const text = [e.message, e.stack, JSON.stringify(e.content ?? null), String(e)].join(" ");
  return [e.code, /https?:|\/srv|token|10\.0\.|Bearer/.test(text)];
}
