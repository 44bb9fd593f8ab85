// case: STB-08
// expect: ok
// value: ["clash","box"]
return [(await clash.whoami({})).server, (await box.whoami({})).server];
