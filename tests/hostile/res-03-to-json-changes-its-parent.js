// case: RES-03
// expect: ok
// why: the list grows while it is written
// console: written once
const list = [];
let times = 0;
const item = {
  toJSON() {
    if (times++ === 0) console.log("written once");
    if (list.length < 50) list.push(item);
    return times;
  },
};
list.push(item);
return list;
