// case: GRA-10
// server: rogue
// expect: ok
// value: "asked and went on"
// questions: 0
// why: it wanted a key to be typed in and a model to answer, and got neither
return await rogue.asks_back({});
