// case: MIC-03
// expect: ok
// value: {"n":1}
// calls: box.echo=1
// why: a thenable argument is only an object; its then is a function, and functions are no JSON
const answer = await box.echo(
  JSON.parse(JSON.stringify({ n: 1, then() {} })),
);
return answer;
