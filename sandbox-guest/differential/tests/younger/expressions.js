// ECMA-262, 22.2.6.6 get RegExp.prototype.hasIndices, 22.2.7.8 MakeMatchIndicesIndexPairArray
{
  const m = /a(?<Z>z)?(b)/d.exec('xaby');
  same(m.indices.length, 3);
  same([m.indices[0], m.indices[1], m.indices[2]], [[1, 3], undefined, [2, 3]]);
  same(Object.keys(m.indices), ['0', '1', '2', 'groups']);
  same(Object.getPrototypeOf(m.indices.groups), null);
  same(Object.keys(m.indices.groups), ['Z']);
  same(m.indices.groups.Z, undefined);
  same(Object.keys(m), ['0', '1', '2', 'index', 'input', 'groups', 'indices']);
  same('indices' in /a/.exec('a'), false);
  same(/a/d.hasIndices, true);
  same(/a/d.flags, 'd');
  same(/😀(.)/du.exec('😀a').indices[1], [2, 3]);
  same('aXa'.replace(/a/dg, '-'), '-X-');
  same('aXa'.match(/a/dg), ['a', 'a']);
  same('aXbX'.split(/X/d), ['a', 'b', '']);
  same([...'ab'.matchAll(/./dg)].map(m => m.indices[0]), [[0, 1], [1, 2]]);
}

// 22.2.6.4 get RegExp.prototype.flags: the order of the flags, and that all of them are read.
{
  const asked = [];
  const odd = new Proxy({}, { get(_, k) { asked.push(k); return true } });
  const get = Object.getOwnPropertyDescriptor(RegExp.prototype, 'flags').get;
  same(get.call(odd), 'dgimsuvy');
  same(asked, ['hasIndices', 'global', 'ignoreCase', 'multiline', 'dotAll', 'unicode', 'unicodeSets', 'sticky']);
}

// 22.2.3.4 and 22.2.6.18: the flag v; after an empty match, the search continues after a whole
// character.
same(/a/v.unicodeSets, true);
throws(SyntaxError, () => new RegExp('a', 'uv'));
same('😀b'.replace(/(?:)/gv, '_'), '_😀_b_');
same('😀b'.match(/(?:)/gv).length, 3);
same(/^[\p{L}--[a-z]]$/v.test('é'), true);
same(/^[\p{L}--[a-z]]$/v.test('e'), false);
same(/^[\w&&\d]$/v.test('7'), true);

// 22.1.3.13 String.prototype.match and 22.1.3.14 matchAll with values that are no expressions
same('a.b'.match('.')[0], 'a');
same([...'aba'.matchAll('a')].map(m => m.index), [0, 2]);
throws(TypeError, () => 'a'.matchAll(/a/));
same('abab'.matchAll(/b/g).next().value.index, 1);
{
  const r = /a/g;
  r.lastIndex = 1;
  same([...'aaa'.matchAll(r)].map(m => m.index), [1, 2]);
  same(r.lastIndex, 1);
}

// 22.2.6.11 RegExp.prototype [ %Symbol.replace% ]: names, and groups that did not match
same('2024-05'.replace(/(?<y>\d+)-(?<m>\d+)/, '$<m>/$<y>$<no>$<'), '05/2024$<');
same('ab'.replace(/(?<x>a)|(?<y>b)/g, '[$<x>$<y>]'), '[a][b]');
same('ab'.replace(/(a)|(b)/g, '[$1$2$3]'), '[a$3][b$3]');
same('a'.replace(/(?<n>a)/, (...all) => JSON.stringify(all)), '["a","a",0,"a",{"n":"a"}]');
same('abcdefghijkl'.replace(/(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)/, '$11-$10-$1-$12-$011'), 'k-j-a-a2-a1l');
same('aa'.replace(/a/y, 'b'), 'ba');
{
  const r = /a/y;
  same('aaa'.replace(r, 'b'), 'baa');
  same(r.lastIndex, 1);
  same('aaa'.replace(r, 'b'), 'aba');
  same('ba'.replace(r, 'c'), 'ba');
  same(r.lastIndex, 0);
}

// 22.2.6.14 RegExp.prototype [ %Symbol.split% ]: limits, groups, and empty matches
same('a1b2c'.split(/(\d)/), ['a', '1', 'b', '2', 'c']);
same('a1b2c'.split(/(\d)|x/, 3), ['a', '1', 'b']);
same('ab'.split(/(?:)/), ['a', 'b']);
same(''.split(/(?:)/), []);
same(''.split(/a/), ['']);
same('ab'.split(/(?=b)/), ['a', 'b']);
same('ab'.split(/^/g), ['ab']);
same('a,b'.split(/,/, 0), []);
same('a,b'.split(/,/, -1), ['a', 'b']);
same('a,b'.split(/,/, 2 ** 32 + 1), ['a']);
same('xaxbx'.split(/x/y), ['', 'a', 'b', '']);
same('A<B>bold</B>'.split(/<(\/)?([^<>]+)>/), ['A', undefined, 'B', 'bold', '/', 'B', '']);
