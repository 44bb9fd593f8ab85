//! Generates scripts that append to a variable's text in every possible way. The guest appends to
//! long texts in place, which must not be observable.

use super::Maker;

/// Values that are appended.
const MORE: [&str; 30] = [
    "'x'",
    "\"y\"",
    "`${i}-`",
    "i",
    "1.5",
    "s",
    "s.length",
    "undefined",
    "null",
    "true",
    "1n",
    "[1, [2]]",
    "{ toString() { log('toString'); s = 'changed'; return 'o' } }",
    "{ valueOf() { log('valueOf'); return 5 } }",
    "Symbol('no')",
    "(s += 'in', 'ner')",
    "f('a')",
    "(() => { throw new RangeError('more') })()",
    "/a\"/.source",
    "function () { return 'f' }()",
    "class { static x = 'c' }.x",
    "async () => {}",
    "i ? 'odd' : s",
    "'a' + i + 'b'",
    "-i",
    "typeof s",
    "s[0] /* of it */",
    "'€'",
    "'é'",
    "'long '.repeat(99)",
];

/// Ways to append `MORE` to `s`.
const WAYS: [&str; 26] = [
    "s += MORE;",
    "s += MORE",
    "s\n  +=\n  MORE;",
    "s /* a */ += /* b */ MORE; // c",
    "(s) += MORE;",
    "s += (MORE);",
    "log(s += MORE);",
    "{ const before = s; s += MORE; log(before.length); log(before.slice(-3)) }",
    "{ let other = s; other += 'other'; s += MORE; log(other.slice(-9)) }",
    "for (let i = 0; i < 12; i++) s += MORE;",
    "for (let i = 0; i < 3; s += MORE, i++);",
    "let n = 1; n += MORE; log(n);",
    "let u; u += MORE; log(u);",
    "{ let s = 'inner'; s += MORE; log(s) }",
    "{ const s = 'constant'; s += MORE }",
    "{ log('early'); s += MORE; let s = '' }",
    "if (i) s += MORE; else s += 'else';",
    "i ? s += 'yes' : s += MORE;",
    "const add = x => s += x; add(MORE); log(String(add));",
    "function add(to = s += MORE) { to += 'to'; return to } log(add()); log(add.toString());",
    "o.s += MORE; o['s'] += 'o'; log(o.s);",
    "[o.s] = [s += MORE];",
    "missing += MORE;",
    "s += s += MORE;",
    "const go = function* () { s += yield MORE; return s += 'end' }; const it = go(); it.next(); log(it.next('given')); log(String(go));",
    "switch (s += MORE) { case s: log('same'); break; default: log('other') }",
];

/// Uses of the resulting text.
const USES: [&str; 16] = [
    "log(s);",
    "log(s.length);",
    "log(s.slice(-5));",
    "log(s === `${s}`);",
    "log({ [s]: 1 });",
    "log(new Map([[s, 1]]).get(s.slice(0)));",
    "log(s.split('x').length);",
    "log(s.indexOf('€'));",
    "log(JSON.stringify(s).length);",
    "log(s < s + 'a');",
    "log(s.toUpperCase().slice(-4));",
    "log([s, s.slice(1)].sort()[0].length);",
    "log(s.replace(/.$/su, '!').slice(-3));",
    "log(s.match(/[^]$/u)?.[0]);",
    "s = s.slice(0, -2);",
    "await null;",
];

/// Recursive functions, with code that catches the error of too deep recursion.
const DEPTHS: [&str; 6] = [
    "function deep(n) { return n ? 1 + deep(n - 1) : 0 } log(deep(50)); log(String(deep));",
    "const deep = (n) => { return n ? deep(n - 1) + 'a' : '' }; log(deep(9)); log(deep.toString());",
    "const o2 = { deep(n) { return n ? this.deep(n - 1) : 'end' } }; try { log(o2.deep(20)) } catch (e) { log(e.name) }",
    "class D { static deep(n) { 'use strict'; return n ? D.deep(n - 1) : n } } try { log(D.deep(20)); log(String(D).length) } catch (e) { log(e.name) }",
    "async function deep(n) { return n ? await deep(n - 1) : 'end' } try { log(await deep(9)) } catch (e) { log(e.name) } log(String(deep));",
    "function even(n) { return n ? odd(n - 1) : true } function odd(n) { return n ? even(n - 1) : false } try { log(even(31)) } catch { log('deep') } log(`${odd}`);",
];

impl Maker {
    pub(crate) fn appending(&mut self) -> Vec<String> {
        let begins = match self.chance.below(3) {
            0 => format!("'{}'.repeat(300)", self.one_of(&["abcd", "é", "€uro"])),
            _ => self.text(),
        };
        let mut statements = vec![
            format!("let s = {begins}; let i = {};", self.times(0, 2)),
            "const o = { s: 'member' }, f = x => { s += x; return s.length };".to_owned(),
        ];
        for _ in 0..self.times(1, 6) {
            let way = self.one_of(&WAYS).to_owned();
            let more = self.one_of(&MORE);
            let way = way.replace("MORE", more);
            // Each statement has its own scope, and an error ends only the statement.
            statements.push(format!(
                "try {{\n{way}\n}} catch (e) {{ log(e?.name); log(e?.message) }}"
            ));
            statements.push(self.one_of(&USES).to_owned());
        }
        if self.rarely() {
            statements.push(format!("{{ {} }}", self.one_of(&DEPTHS)));
        }
        statements.push("log(s);".to_owned());
        statements
    }
}
