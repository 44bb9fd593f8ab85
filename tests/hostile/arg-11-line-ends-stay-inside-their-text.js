// case: ARG-11
// expect: ok
// args: {"body":"a\u0000b","subject":"hello\r\nBcc: evil@example.net","to":"a@corp.example, b@evil.example"}
// calls: box.send=1
await box.send({
  to: "a@corp.example, b@evil.example",
  subject: "hello\r\nBcc: evil@example.net",
  body: "a\0b",
});
