// case: STB-01
// expect: ok
// value: {"n":1}
// calls: box.echo=1
Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => "mine";
return await box.echo({ n: 1 });
