// case: AMB-08
// expect: script_error
// name: ReferenceError
new ShadowRealm().evaluate("1");
