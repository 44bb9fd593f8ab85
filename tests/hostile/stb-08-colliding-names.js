// case: STB-08
// expect: ok
// value: [3,true]
// why: get-sum, get_sum and get.sum are three tools; each member reaches its own
const members = Object.keys(clash).sort();
const answers = [];
for (const m of members) answers.push((await clash[m]({})).name);
return [members.length, answers.includes("get-sum") && answers.includes("get_sum") && answers.includes("get.sum")];
