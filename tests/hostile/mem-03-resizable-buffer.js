// case: MEM-03
// expect: script_error | ok | limit:memory
// why: reserving is as good as taking
const b = new ArrayBuffer(8, { maxByteLength: 2 ** 40 });
b.resize(2 ** 39);
return b.byteLength;
