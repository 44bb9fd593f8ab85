//! Generates uses of `JSON.parse` and `JSON.stringify`.

use super::Maker;
use super::texts::quoted;

const NUMBERS: [&str; 24] = [
    "0",
    "-0",
    "1",
    "-1",
    "10",
    "123456789",
    "1234567890",
    "2147483648",
    "-2147483649",
    "0.5",
    "-0.0",
    "1e3",
    "1E-3",
    "1.5e+2",
    "1e400",
    "-1e400",
    "9007199254740993",
    "123456789012345678901234567890",
    "0.1000000000000000055511151231257827",
    "5e-324",
    "2.2250738585072011e-308",
    "1e-7",
    "100000000000000000000000",
    "4.35",
];
const NOT_NUMBERS: [&str; 12] = [
    "01", "-", "1.", ".5", "1e", "+1", "0x1", "1e+", "-a", "NaN", "Infinity", "00",
];
const KEYS: [&str; 16] = [
    "a",
    "b",
    "c",
    "id",
    "1",
    "0",
    "10",
    "-1",
    "4294967295",
    "4294967294",
    "__proto__",
    "constructor",
    "toJSON",
    "",
    "é€",
    "a\\u0062",
];
const ESCAPES: [&str; 14] = [
    "\\n",
    "\\\"",
    "\\\\",
    "\\/",
    "\\u0041",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\udE00",
    "\\b",
    "\\t",
    "\\u0000",
    "\\f\\r",
    "\\uFEFF",
];
const NOT_ESCAPES: [&str; 8] = [
    "\\x41", "\\u00g0", "\\", "\\u12", "\u{1}", "\n", "\\'", "\\u+041",
];
const SPACES: [&str; 8] = ["", "", "", "", " ", "\n", "\t\r", "  "];
const OTHERS: [&str; 12] = [
    "",
    "undefined",
    "'a'",
    "tru",
    "nul",
    "[1,]",
    "{\"a\":1,}",
    "[,1]",
    "{a:1}",
    "{\"a\" 1}",
    "\u{a0}",
    "// c",
];

/// Reviver functions, which report their arguments; some of them change the value.
const REVIVERS: [&str; 14] = [
    "function (k, v) { log(k); log(v); return v }",
    "function (k, v) { log(Object.keys(this)); return v }",
    "(k, v) => typeof v === 'number' ? undefined : v",
    "(k, v) => Array.isArray(v) ? v.length : v",
    "(k, v) => { if (k === 'b') throw new RangeError('revived'); return v }",
    "function (k, v) { if (k === '0') this[1] = { made: 1 }; return v }",
    "function (k, v) { if (k === 'a') delete this.b; return v }",
    "function (k, v) { if (k === 'a') this.c = [1, 2]; return v }",
    "function (k, v) { if (Array.isArray(this)) this.length = 1; return v }",
    "function (k, v) { return v && typeof v === 'object' ? Object.freeze(v) : v }",
    "function (k, v) { if (k === 'a') this.b = new Proxy({ p: 1, q: 2 }, { ownKeys(t) { log('keys'); return ['q', 'p'] } }); return v }",
    "(k, v, { source }) => { log(source); return v }",
    "(k, v, c) => { log(c); return v }",
    "() => {}",
];

const VALUES: [&str; 46] = [
    "null",
    "true",
    "undefined",
    "Symbol('s')",
    "() => 1",
    "1n",
    "-0",
    "0.1",
    "1e21",
    "1e-7",
    "NaN",
    "-Infinity",
    "-2147483648",
    "4294967296",
    "[]",
    "{}",
    "[1, , 3]",
    "[undefined, () => 1, Symbol()]",
    "[0.5, -0, NaN]",
    "new Date(0)",
    "new Date(NaN)",
    "new Map([[1, 2]])",
    "new Set([1])",
    "Object(3)",
    "Object('s')",
    "Object(false)",
    "Object(1n)",
    "Object(Symbol())",
    "new Proxy([1, { a: 2 }], {})",
    "new Proxy({ a: 1 }, { ownKeys(t) { log('keys'); return ['a'] }, get(t, k) { log(k); return t[k] } })",
    "new Uint8Array(2)",
    "/r/g",
    "new Error('e')",
    "Object.create(null)",
    "Object.create({ inherited: 1 })",
    "Object.setPrototypeOf([1, 2], null)",
    "Object.setPrototypeOf({ a: 1 }, Array.prototype)",
    "new (class A { x = 1; get y() { return 2 } })()",
    "new (class L extends Array {})(1, 2)",
    "(() => { const o = { a: [] }; o.a.push(o); return o })()",
    "(() => { const row = { id: 1 }; return [row, row, { ...row }] })()",
    "(() => { let o = 1; for (let i = 0; i < 120; i++) o = i % 2 ? [o] : { o }; return o })()",
    "(() => { const o = { a: 1, b: 2, c: 3 }; delete o.b; o.d = 4; return [o, { a: 5, c: 6, d: 7 }] })()",
    "(() => { const a = [1, 2]; a.more = 3; a.length = 3; return a })()",
    "(function () { return arguments })(1, 'a')",
    "async () => {}",
];

const MEMBERS: [&str; 14] = [
    "get g() { log('got'); return [1] }",
    "toJSON() { log('toJSON'); return 'own' }",
    "toJSON: (key) => key",
    "toJSON: 3",
    "get toJSON() { log('asked'); return undefined }",
    "[Symbol('s')]: 1",
    "['__proto__']: 1",
    "__proto__: { inherited: 1 }",
    "9: 'i'",
    "1: 'i'",
    "'-1': 0",
    "4294967295: 'big'",
    "set only(v) {}",
    "fn() {}",
];

const REPLACERS: [&str; 20] = [
    "null",
    "undefined",
    "['a', 'b', 'id']",
    "['b', 'a', 'b']",
    "[1, '1', Object(9), Object('a')]",
    "[]",
    "[{}, null, Symbol(), true]",
    "{}",
    "5",
    "(k, v) => k === 'a' ? undefined : v",
    "function (k, v) { log(k); log(this === undefined); return v }",
    "(k, v) => typeof v === 'number' ? String(v) : v",
    "function (k, v) { log(Object.keys(this)); return v }",
    "(k, v) => { if (k === 'b') throw new RangeError('replaced'); return v }",
    "(k, v) => typeof v === 'bigint' ? String(v) : v",
    "(k, v) => k.length > 3 || k === 'v' ? v : k ? { deep: k + '.' , v: null } : v",
    "new Proxy(['a', 'id'], {})",
    "new Proxy(function (k, v) { log(k); return v }, {})",
    "Object.assign(['a'], { length: 2 })",
    "new Set(['a'])",
];
const SPACES_OF: [&str; 18] = [
    "0",
    "1",
    "2",
    "10",
    "11",
    "100",
    "-1",
    "2.9",
    "NaN",
    "'\\t'",
    "'--'",
    "'a longer gap than ten'",
    "'€'",
    "'é'",
    "''",
    "Object(2)",
    "Object('ab')",
    "true",
];
const CHANGES: [&str; 10] = [
    "Object.prototype.toJSON = function () { log('changed'); return 'changed' };",
    "Object.defineProperty(Array.prototype, 'toJSON', { get() { log('got'); return () => 'got' } });",
    "BigInt.prototype.toJSON = function () { return 'big' };",
    "String.prototype.toJSON = function () { return 'text' };",
    "Number.prototype.toJSON = function () { return 'number' };",
    "Object.prototype.a = 'inherited';",
    "Array.prototype[1] = 'inherited';",
    "Object.defineProperty(Object.prototype, 'a', { set(v) { log(v) } });",
    "Object.setPrototypeOf(Array.prototype, null);",
    "Object.setPrototypeOf(Object.prototype.constructor.prototype, null); Function.prototype.toJSON = () => 'f';",
];

impl Maker {
    pub(crate) fn parsing(&mut self) -> Vec<String> {
        let mut statements = Vec::new();
        if self.chance.below(20) == 0 {
            let change = self.one_of(&CHANGES);
            statements.push(self.change(change));
        }
        for _ in 0..self.times(1, 3) {
            let text = self.json_argument();
            let more = match self.chance.below(4) {
                0 => format!(", {}", self.one_of(&REVIVERS)),
                1 if self.rarely() => format!(", {}", self.value()),
                _ => String::new(),
            };
            statements.push(Self::attempt_class(&format!("JSON.parse({text}{more})")));
        }
        statements
    }

    fn json_argument(&mut self) -> String {
        if self.chance.below(15) == 0 {
            return self.value();
        }
        let text = self.json(4);
        let mut units: Vec<u16> = text.encode_utf16().collect();
        // A letter is removed or replaced: the result is mostly not JSON any more.
        if self.chance.below(5) == 0 && !units.is_empty() {
            let at = self.chance.below(units.len());
            match self.chance.below(3) {
                0 => drop(units.remove(at)),
                1 => {
                    let other = self.units(1);
                    units.splice(at..at, other);
                }
                _ => units.truncate(at),
            }
        }
        if self.rarely() {
            let rows = self.times(1, 30);
            return format!(
                "('[' + Array({rows}).fill({}).join() + ']')",
                quoted(&units)
            );
        }
        quoted(&units)
    }

    fn json(&mut self, depth: usize) -> String {
        let [before, after] = [(); 2].map(|()| self.one_of(&SPACES).to_owned());
        let value = match self.chance.below(if depth == 0 { 6 } else { 12 }) {
            0 => self.one_of(&["true", "false", "null"]).to_owned(),
            1 | 2 => self.one_of(&NUMBERS).to_owned(),
            3 | 4 => self.json_text(),
            5 if self.rarely() => self.one_of(&NOT_NUMBERS).to_owned(),
            5 if self.rarely() => self.one_of(&OTHERS).to_owned(),
            5 => self.number(),
            6..9 => {
                let items: Vec<String> = (0..self.times(0, 4))
                    .map(|_| self.json(depth - 1))
                    .collect();
                format!("[{}]", items.join(","))
            }
            _ => {
                let members: Vec<String> = (0..self.times(0, 5))
                    .map(|_| self.json_member(depth - 1))
                    .collect();
                format!("{{{}}}", members.join(","))
            }
        };
        format!("{before}{value}{after}")
    }

    fn json_member(&mut self, depth: usize) -> String {
        let space = self.one_of(&SPACES).to_owned();
        let key = if self.rarely() {
            self.json_text()
        } else {
            format!("\"{}\"", self.one_of(&KEYS))
        };
        format!("{space}{key}{space}:{}", self.json(depth))
    }

    fn json_text(&mut self) -> String {
        let mut text = String::from("\"");
        for _ in 0..self.times(0, 5) {
            let piece = match self.chance.below(10) {
                0 | 1 => self.one_of(&ESCAPES),
                2 if self.rarely() => self.one_of(&NOT_ESCAPES),
                _ => self.one_of(&[
                    "a", "b", "abcdefgh", "é", "€", "😀", " ", "1", "\u{7f}", "\u{2028}", "/", "'",
                ]),
            };
            text.push_str(piece);
        }
        text + "\""
    }

    pub(crate) fn writing(&mut self) -> Vec<String> {
        let mut statements = Vec::new();
        if self.rarely() {
            let change = self.one_of(&CHANGES);
            statements.push(self.change(change));
        }
        let value = self.writable(3);
        statements.push(format!("const v = {value};"));
        for _ in 0..self.times(1, 3) {
            let replacer = if self.chance.below(3) > 0 {
                "null"
            } else {
                self.one_of(&REPLACERS)
            };
            let space = match self.chance.below(4) {
                0 => format!(", {}", self.one_of(&SPACES_OF)),
                1 if self.rarely() => format!(", {}", self.value()),
                _ => String::new(),
            };
            let use_ = match self.chance.below(4) {
                0 => "JSON.stringify(v)".to_owned(),
                1 => format!("JSON.stringify([v, v], {replacer}{space})"),
                _ => format!("JSON.stringify(v, {replacer}{space})"),
            };
            statements.push(Self::attempt(&use_));
        }
        statements
    }

    fn writable(&mut self, depth: usize) -> String {
        match self.chance.below(if depth == 0 { 5 } else { 12 }) {
            0 => self.number(),
            1 => self.text(),
            2..5 => self.one_of(&VALUES).to_owned(),
            5 => self.value(),
            6..8 => {
                let items: Vec<String> = (0..self.times(0, 4))
                    .map(|_| self.writable(depth - 1))
                    .collect();
                format!("[{}]", items.join(", "))
            }
            8 => {
                let item = self.writable(depth - 1);
                format!(
                    "Array.from({{ length: {} }}, (_, i) => ({{ id: i, v: {item} }}))",
                    self.times(1, 5)
                )
            }
            9 => {
                // Omits valid texts that the engine wrongly refuses.
                let text = self
                    .json(depth)
                    .replace("\\ud83d", "")
                    .replace("\\udE00", "")
                    .replace("\\ude00", "");
                let text = text.replace("1e400", "1").replace("__proto__", "p");
                let units: Vec<u16> = text.encode_utf16().collect();
                format!(
                    "(() => {{ try {{ return JSON.parse({}) }} catch {{ return 'no JSON' }} }})()",
                    quoted(&units)
                )
            }
            _ => {
                let members: Vec<String> = (0..self.times(0, 5))
                    .map(|_| self.writable_member(depth - 1))
                    .collect();
                format!("{{ {} }}", members.join(", "))
            }
        }
    }

    fn writable_member(&mut self, depth: usize) -> String {
        if self.chance.below(6) == 0 {
            return self.one_of(&MEMBERS).to_owned();
        }
        let key = match self.chance.below(6) {
            0 => self.literal(),
            _ => self
                .one_of(&["a", "b", "c", "id", "name", "'é'", "'€'", "'a\"'"])
                .to_owned(),
        };
        // Avoids a second `__proto__` key, which is a syntax error.
        let key = if key == "'__proto__'" {
            "a".to_owned()
        } else {
            key
        };
        format!("{key}: {}", self.writable(depth))
    }
}
