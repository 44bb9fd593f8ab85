// ECMA-262, 25.5.2.3 QuoteJSONString: lone surrogates are written as escapes
same(JSON.stringify('\ud83d'), '"\\ud83d"');
same(JSON.stringify('\ude00\ud83d'), '"\\ude00\\ud83d"');
same(JSON.stringify('😀'), '"😀"');
same(JSON.stringify({ '\udfff': 1 }), '{"\\udfff":1}');
same(JSON.stringify('\b\t\n\f\r"\\\u0000\u001f\u007f\u2028'), '"\\b\\t\\n\\f\\r\\"\\\\\\u0000\\u001f\u007f\u2028"');
same(JSON.stringify('é\u0001€'), '"é\\u0001€"');

// 25.5.2 JSON.stringify: the gap
same(JSON.stringify([1, { a: [] }], null, 2), '[\n  1,\n  {\n    "a": []\n  }\n]');
same(JSON.stringify([1], null, 11), '[\n          1\n]');
same(JSON.stringify([1], null, 0.9), '[1]');
same(JSON.stringify([1], null, 'abcdefghijklm'), '[\nabcdefghij1\n]');
same(JSON.stringify([[], {}], null, 1), '[\n [],\n {}\n]');
same(JSON.stringify({ a: 1 }, null, new String('-')), '{\n-"a": 1\n}');

// The property list: numbers and strings, each once, in their order
same(JSON.stringify({ a: 1, 1: 2, b: { a: 3, c: 4 } }, ['b', 1, 'a', 'b', new Number(1), null]), '{"b":{"a":3},"1":2,"a":1}');
same(JSON.stringify([{ a: 1 }], []), '[{}]');

// 25.5.2.2 SerializeJSONProperty
same(JSON.stringify({ a: undefined, b() {}, c: Symbol(), d: null }), '{"d":null}');
same(JSON.stringify([undefined, () => 1, Symbol()]), '[null,null,null]');
same(JSON.stringify([NaN, -0, 1e21, 1e-7, -Infinity]), '[null,0,1e+21,1e-7,null]');
same(JSON.stringify([new Number(3), new String('x'), new Boolean(false)]), '[3,"x",false]');
throws(TypeError, () => JSON.stringify(1n));
throws(TypeError, () => JSON.stringify({ a: [Object(1n)] }));
same(JSON.stringify({ toJSON(key) { return 'k' + key } }), '"k"');
same(JSON.stringify({ a: { toJSON(key) { return 'k' + key } } }), '{"a":"ka"}');
same(JSON.stringify(undefined), undefined);
{
  const around = {};
  around.in = [around];
  throws(TypeError, () => JSON.stringify(around));
}
same(JSON.stringify({ 2: 'b', 1: 'a', x: 0, 0: 'z' }), '{"0":"z","1":"a","2":"b","x":0}');
same(JSON.stringify(Object.defineProperty({ a: 1 }, 'b', { value: 2 })), '{"a":1}');
same(JSON.stringify(Object.create({ a: 1 })), '{}');
same(JSON.stringify(new Date(Date.UTC(2026, 0, 2))), '"2026-01-02T00:00:00.000Z"');

// 25.5.1 JSON.parse
same(JSON.parse('"\\ud83d"'), '\ud83d');
same(JSON.parse('"\\ud83d\\ude00"'), '😀');
same(JSON.parse('"\u2028\u2029"'), '\u2028\u2029');
same(JSON.parse('1e400'), Infinity);
same(Object.is(JSON.parse('-0'), -0), true);
same(JSON.parse('123456789012345678901234567890'), 1.2345678901234568e29);
same(JSON.parse('{"a":1,"b":2,"a":3}'), { a: 3, b: 2 });
same(Object.keys(JSON.parse('{"b":1,"2":1,"a":1,"1":1}')), ['1', '2', 'b', 'a']);
{
  const made = JSON.parse('{"__proto__":{"a":1}}');
  same(Object.getPrototypeOf(made) === Object.prototype, true);
  same(Object.keys(made), ['__proto__']);
}
for (const bad of ['', ' ', '01', '+1', '.5', '1.', '1e', '-', "'a'", '"a', '"\n"', '"\\x41"', '"\\u00g0"', '[1,]', '[,1]', '{"a":1,}', '{a:1}', '{"a"}', 'undefined', 'NaN', 'tru', '1 2', '\u00a01', '\ufeff1', '/**/1', '[', '{', '\\u0031']) {
  throws(SyntaxError, () => JSON.parse(bad));
}
same(JSON.parse('\t\r\n 1 \n'), 1);
same(JSON.parse(null), null);
throws(SyntaxError, () => JSON.parse(undefined));
throws(TypeError, () => JSON.parse(Symbol()));

// 25.5.1.1 InternalizeJSONProperty
{
  const seen = [];
  same(JSON.parse('{"a":[1,{"b":2}],"c":3}', function (key, value) { seen.push(key); return value }), { a: [1, { b: 2 }], c: 3 });
  same(seen, ['0', 'b', '1', 'a', 'c', '']);
  same(JSON.parse('[1,2,3]', (key, value) => (key === '1' ? undefined : value)).hasOwnProperty(1), false);
  same(JSON.parse('{"a":1,"b":2}', (key, value) => (key === 'a' ? undefined : value)), { b: 2 });
  throws(RangeError, () => JSON.parse('[1]', () => { throw new RangeError() }));
}
