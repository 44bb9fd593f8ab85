// case: GRA-10
// server: rogue
// expect: ok
// value: ["outcome-unknown",false]
// questions: 0
// why: a result that is a question is no value, and the script learns nothing of what it asks
return await rogue.wants_input({}).catch((e) => [e.code, JSON.stringify([e.message, e.content ?? null]).includes("API key")]);
