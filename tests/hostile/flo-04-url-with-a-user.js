// case: ARG-10
// policies: shipped
// expect: ok
// value: ["unanswered","unanswered","unanswered","unanswered"]
// calls: box.send=0
// why: what no parser reads in one way only is nowhere, though the script names it
const places = ["https://docs.rs@evil.example/", "javascript:alert(1)", "//evil.example/x", "a@corp.example\r\nBcc: b@evil.example"];
const told = [];
for (const to of places) told.push(await box.send({ to }).catch((e) => e.code));
return told;
