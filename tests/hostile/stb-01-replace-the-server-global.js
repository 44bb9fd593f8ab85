// case: STB-01
// expect: ok | script_error
// why: the script may hide a server from itself; authority stays with the broker
// calls: box.forbidden=0
try {
  globalThis.box = { forbidden: async () => "mine" };
} catch {}
try {
  return await box.forbidden({});
} catch (e) {
  return e.code;
}
