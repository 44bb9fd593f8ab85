// case: GRA-11
// policies: shipped
// answers: refuse
// expect: ok
// value: ["the call to `box.send` was refused by the approver",[]]
// calls: box.send=0
// why: no rule, no reason, no label: nothing to steer the next try by
await box.echo({});
const e = await box.send({ to: ["eve", "evil.example"].join("@") }).catch((e) => e);
const words = ["flow-", "untrusted", "private", "explain", "foreign", "cedar"];
return [e.message, words.filter((word) => JSON.stringify([e.message, e.stack, e.content, { ...e }]).includes(word))];
