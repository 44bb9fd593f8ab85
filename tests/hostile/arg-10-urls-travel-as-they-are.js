// case: ARG-10
// expect: ok
// args: {"url":"https://docs.rs@evil.example/"} | {"url":"http://0x7f000001/\r\nHost: a"} | {"url":"javascript:1"}
// calls: box.echo=3
for (const url of ["https://docs.rs@evil.example/", "http://0x7f000001/\r\nHost: a", "javascript:1"]) {
  await box.echo({ url });
}
