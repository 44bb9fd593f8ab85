// ECMA-262, 22.1.3.20 String.prototype.replaceAll ( searchValue, replaceValue )
const f = String.prototype.replaceAll;
same(f.length, 2);
same(f.name, 'replaceAll');
const own = Object.getOwnPropertyDescriptor(String.prototype, 'replaceAll');
same([own.writable, own.enumerable, own.configurable], [true, false, true]);
same('prototype' in f, false);
throws(TypeError, () => new f());

// Step 1: RequireObjectCoercible(this value).
throws(TypeError, () => f.call(null, 'a', 'b'));
throws(TypeError, () => f.call(undefined, 'a', 'b'));
same(f.call(1213, 1, 'x'), 'x2x3');
same(f.call(true, 'e', 'E'), 'truE');
same(f.call({ toString: () => 'aXbX' }, 'X', '-'), 'a-b-');
throws(TypeError, () => f.call(Symbol(), 'a', 'b'));

// Step 2: a search value other than undefined and null may be an expression, which must be
// global, and may replace on its own.
throws(TypeError, () => 'aa'.replaceAll(/a/, 'b'));
throws(TypeError, () => 'aa'.replaceAll(/a/y, 'b'));
same('aXa'.replaceAll(/a/g, 'b'), 'bXb');
same('aXa'.replaceAll(/a/gy, 'b'), 'bXa');
same('AaB'.replaceAll(/a/gi, '[$&]'), '[A][a]B');
{
  const asked = [];
  const odd = {
    get [Symbol.match]() { asked.push('match'); return true },
    get flags() { asked.push('flags'); return { toString() { asked.push('text'); return 'g' } } },
    get [Symbol.replace]() { asked.push('replace'); return (...all) => all },
  };
  same('t'.replaceAll(odd, 'by'), ['t', 'by']);
  same(asked, ['match', 'flags', 'text', 'replace']);
  throws(TypeError, () => 't'.replaceAll({ [Symbol.match]: true, flags: undefined }, ''));
  throws(TypeError, () => 't'.replaceAll({ [Symbol.match]: true, flags: null }, ''));
  throws(TypeError, () => 't'.replaceAll({ [Symbol.match]: true, flags: 'iy' }, ''));
  throws(TypeError, () => 't'.replaceAll({ [Symbol.replace]: 5 }, ''));
  same('a[object Object]'.replaceAll({ [Symbol.replace]: undefined }, 'o'), 'ao');
}
same('a/a/g'.replaceAll(Object.assign(/a/g, { [Symbol.match]: false, [Symbol.replace]: null }), 'x'), 'ax');

// Steps 3 to 6: the string, the search string and the replacement are converted in this order.
{
  const order = [];
  const text = (name, value) => ({ toString() { order.push(name); return value } });
  same(f.call(text('this', 'aba'), text('search', 'a'), text('by', 'c')), 'cbc');
  same(order, ['this', 'search', 'by']);
  order.length = 0;
  throws(RangeError, () => f.call(text('this', ''), { toString() { throw new RangeError() } }, text('by', '')));
  same(order, ['this']);
}
throws(TypeError, () => 'a'.replaceAll('a', Symbol()));
throws(TypeError, () => 'a'.replaceAll(Symbol(), 'a'));
same('undefined null'.replaceAll(undefined, 'u'), 'u null');
same('undefined null'.replaceAll(null, 'n'), 'undefined n');
same('aa'.replaceAll('a'), 'undefinedundefined');

// Steps 7 to 10: matches do not overlap, and after an empty match the search continues one unit
// later.
same('aaa'.replaceAll('aa', 'b'), 'ba');
same('aaaa'.replaceAll('aa', 'b'), 'bb');
same(''.replaceAll('', 'x'), 'x');
same('ab'.replaceAll('', '_'), '_a_b_');
same('😀'.replaceAll('', '_'), '_\ud83d_\ude00_');
same('abc'.replaceAll('abcd', 'x'), 'abc');
same('\ud83d\ude00\ud83d'.replaceAll('\ud83d', 'x'), 'x\ude00x');
same('é€é'.replaceAll('é', '€'), '€€€');
same('€'.repeat(3).replaceAll('€', 'a'), 'aaa');

// Step 14: a function gets the search string, the position and the whole string.
{
  const calls = [];
  same('abab'.replaceAll('ab', function (...all) { calls.push([this, ...all]); return calls.length }), '12');
  same(calls, [[undefined, 'ab', 0, 'abab'], [undefined, 'ab', 2, 'abab']]);
}
same('aa'.replaceAll('a', () => '$&'), '$&$&');
same('aa'.replaceAll('a', () => undefined), 'undefinedundefined');
throws(TypeError, () => 'aa'.replaceAll('a', () => Symbol()));
throws(TypeError, () => 'aa'.replaceAll('a', () => Object.create(null)));
same('aa'.replaceAll('b', () => { throw new RangeError() }), 'aa');

// 22.1.3.19.1 GetSubstitution, without captures and names.
same('abc'.replaceAll('b', '$$'), 'a$c');
same('abcb'.replaceAll('b', '[$&]'), 'a[b]c[b]');
same('abcb'.replaceAll('b', '$`'), 'aacabc');
same('abcb'.replaceAll('b', "$'"), 'acbc');
same('ab'.replaceAll('b', '$0$1$10$00$01'), 'a$0$1$10$00$01');
same('ab'.replaceAll('b', '$<b>'), 'a$<b>');
same('ab'.replaceAll('b', '$'), 'a$');
same('ab'.replaceAll('b', '$x$'), 'a$x$');
same('ab'.replaceAll('b', '$$$&$$1'), 'a$b$1');
