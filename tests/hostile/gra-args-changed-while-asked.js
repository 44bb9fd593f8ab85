// case: GRA
// asks: box.write
// answers: once
// expect: ok
// args: {"list":[1],"path":"a"}
// question: box.write {"list":[1],"path":"a"}
// why: what was shown is what is sent, whatever the script does to its object meanwhile
const args = { path: "a", list: [1] };
const call = box.write(args);
args.path = "b";
args.list.push(2);
Object.defineProperty(args, "toJSON", { value: () => ({ path: "c" }) });
await call;
