// case: CPU-06
// expect: ok
// why: every call of the comparator is a call of its own, decided and recorded; sort itself waits for none
// value: [[3,1,2],true]
const open = [];
const items = [3, 1, 2].sort((a, b) => {
  open.push(box.echo({ a, b }));
  return 0;
});
const answers = await Promise.all(open);
return [items, answers.length === open.length && answers.length > 0];
