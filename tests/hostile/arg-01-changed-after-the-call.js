// case: ARG-01
// expect: ok
// value: {"to":"boss@corp.example"}
const letter = { to: "boss@corp.example" };
const answer = box.echo(letter);
letter.to = "evil@example.net";
return await answer;
