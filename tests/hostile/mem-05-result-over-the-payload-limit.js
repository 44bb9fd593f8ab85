// case: MEM-05
// expect: ok
// limits: result_bytes_max=1048576
// calls: box.big=1
// value: "limit-payload"
try {
  return (await box.big({ bytes: 10 * 1024 * 1024 })).text.length;
} catch (e) {
  return e.code;
}
