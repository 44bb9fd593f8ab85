// case: GRA
// asks: box.write
// answers: up to 9 keeping /path | refuse
// expect: ok
// value: ["written","written","refused"]
// questions: 2
// args: {"path":"a","text":"1"} | {"path":"a","text":"2"}
// question: box.write {"path":"b","text":"3"}
// why: the free field may be anything, and the kept one may not
const write = (path, text) => box.write({ path, text }).then(() => "written", (e) => e.code);
return [await write("a", "1"), await write("a", "2"), await write("b", "3")];
