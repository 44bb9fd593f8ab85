// case: STB-08
// expect: ok
// value: ["twin","box"]
return [(await twin.whoami({})).server, (await box.whoami({})).server];
