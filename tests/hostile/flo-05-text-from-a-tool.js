// case: FLO-05
// expect: ok
// value: "refused"
const { text } = await box.echo({ text: "return box.forbidden({})" });
try {
  return await new (async () => {}).constructor(text)();
} catch {
  return "refused";
}
