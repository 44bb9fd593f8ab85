// case: GRA
// asks: box.write
// answers: up to 9 keeping /text
// expect: ok
// value: ["written","unanswered"]
// calls: box.write=1
// questions: 2
// why: a long value is held by its digest, and its last letter counts
const text = "x".repeat(50_000);
const write = (text) => box.write({ text }).then(() => "written", (e) => e.code);
return [await write(text), await write(text.slice(0, -1) + "y")];
