// case: STB-03
// expect: ok
// value: {"n":1}
JSON.parse = () => ({ n: "mine" });
JSON.stringify = () => '{"n":"mine"}';
Object.entries = Object.keys = Reflect.ownKeys = () => [];
return await box.echo({ n: 1 });
