// case: GRA
// asks: box.write
// answers: refuse
// expect: denied
// code: refused
// calls: box.write=0
// why: what approvers say is known, and saying it as an argument or to a promise is not being one
for (const name of ["approve", "answer", "grant", "airlock", "host"]) if (name in globalThis) return name;
const call = box.write({ answer: "allow-once", nonce: "0", uses_max: 9, approval: 2 });
call.resolve?.("allow-once");
await call;
