// case: AMB-08
// check: warn
// expect: script_error
// name: ReferenceError
new ShadowRealm().evaluate("1");
