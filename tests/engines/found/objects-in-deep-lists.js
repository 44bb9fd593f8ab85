const inner = Array.from({ length: 12 }, (_, i) => `{"k${i}":1,"b":1}`).join(",");
const text = `[{"a":1,"b":2},{"a":[[[[[[[${inner}]]]]]]],"b":2}]`;
log(JSON.stringify(JSON.parse(text)) === text);
