// case: STB
// expect: ok
// value: {"n":1}
// calls: box.echo=1
return await box_echo({ n: 1 });
