// case: MEM-03
// expect: ok
// value: [400,2800000,true]
// why: each kept text holds on to the room behind it, which is as long as itself and not longer
const kept = [];
for (let i = 0; i < 400; i++) {
  let text = "x".repeat(6_990);
  text += "0123456789";
  const short = text;
  text += "and what nobody keeps";
  kept.push(short);
}
return [kept.length, kept.join("").length, kept.every((text) => text.endsWith("789"))];
