// case: STB-08
// expect: ok
// value: "get_sum"
return (await clash.get_sum({})).name;
