// case: STB-03
// expect: ok
// expect on quickjs: limit:stack
// why: that engine writes JSON with an array of its own, which the setter sees, and this one calls itself
// value: [{"a":1,"b":[2]},[]]
const caught = [];
Object.defineProperty(Object.prototype, "a", { set: () => caught.push("a"), configurable: true });
Object.defineProperty(Array.prototype, "0", { set: () => caught.push(0), configurable: true });
const answer = await box.echo({ ...JSON.parse('{"a":1,"b":[2]}') });
const text = JSON.stringify(answer);
delete Object.prototype.a;
delete Array.prototype[0];
return [JSON.parse(text), caught];
