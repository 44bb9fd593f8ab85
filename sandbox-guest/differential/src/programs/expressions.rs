//! Generates regular expressions and their uses.

use super::Maker;
use super::texts::quoted;

/// Simple parts of an expression.
const ATOMS: [&str; 40] = [
    "a", "a", "b", "ab", "c", ".", "\\d", "\\w", "\\s", "\\S", "\\W", "[ab]", "[^a]", "[a-c1-3]",
    "[]", "[^]", "x", ",", "-", "é", "€", "😀", "\\u0061", "\\x61", "ß", "K", "ſ", "ı", "Σ", "\\/",
    "[/]", "\\n", "\\r?\\n", "\\cA", "\\0", "[\\b]", "\\$", "\\ud83d", "\\ude00", "[\\s\\S]",
];
/// Parts that need one of the Unicode flags.
const WHOLE_ATOMS: [&str; 6] = [
    "\\u{61}",
    "\\u{1f600}",
    "\\p{L}",
    "\\P{Lu}",
    "[😀-😁]",
    "\\p{Script=Greek}",
];
const ANCHORS: [&str; 4] = ["^", "$", "\\b", "\\B"];
const QUANTIFIERS: [&str; 10] = [
    "?", "??", "*", "+", "*?", "+?", "{2}", "{0,2}", "{1,}", "{0}",
];

/// Statements before an expression is used. They avoid expressions that are global but do not
/// advance, which would loop for ever.
const BEFORE: [&str; 23] = [
    "r.exec = function (s) { log('exec'); return null };",
    "r.exec = function (s) { log('exec'); const m = RegExp.prototype.exec.call(this, s); if (m) m.index = 1; return m };",
    "let left = 3; r.exec = function (s) { return left-- > 0 ? { length: 2, 0: 'a', 1: 'b', index: 0, groups: { a: 'g' } } : null };",
    "r.exec = 5;",
    "r.exec = () => 5;",
    "Object.freeze(r);",
    "Object.defineProperty(r, 'lastIndex', { writable: false });",
    "if (r.global) Object.defineProperty(r, 'flags', { get() { log('flags'); return 'g' } });",
    "Object.defineProperty(r, 'flags', { get() { log('flags'); return '' } });",
    "if (r.global) Object.defineProperty(r, 'global', { get() { log('global'); return true } });",
    "if (r.global) Object.defineProperty(r, 'flags', { value: 'gu' });",
    "Object.defineProperty(r, 'sticky', { value: true });",
    "r.constructor = undefined;",
    "r.constructor = { [Symbol.species]: function (...all) { log(all); return new RegExp(...all) } };",
    "r.constructor = { get [Symbol.species]() { log('species'); return null } };",
    "r[Symbol.match] = false;",
    "r[Symbol.replace] = undefined;",
    "r[Symbol.split] = null;",
    "r.compile('a(b)?', 'g');",
    "r.compile(/x|(?<a>b)/y);",
    "Object.setPrototypeOf(r, Object.create(RegExp.prototype));",
    "Object.setPrototypeOf(r, null);",
    "r = new Proxy(r, { get(t, k) { log(k); const v = Reflect.get(t, k, t); return typeof v === 'function' ? v.bind(t) : v } });",
];

/// Changes of objects that all expressions share.
const CHANGES: [&str; 14] = [
    "RegExp.prototype.exec = function (s) { log('exec'); return null };",
    "const exec = RegExp.prototype.exec; RegExp.prototype.exec = function (s) { log(this.lastIndex); return exec.call(this, s) };",
    "delete RegExp.prototype.exec;",
    "Object.defineProperty(RegExp.prototype, 'flags', { get() { log('flags'); return this.sticky ? 'y' : '' } });",
    "Object.defineProperty(RegExp.prototype, 'global', { get() { log('global'); return false } });",
    "Object.defineProperty(RegExp.prototype, 'unicode', { get() { log('unicode'); return true } });",
    "Object.defineProperty(RegExp, Symbol.species, { get() { log('species'); return RegExp } });",
    "RegExp.prototype.constructor = function (...all) { log(all); return new RegExp(...all) };",
    "delete RegExp.prototype.constructor;",
    "delete RegExp.prototype.global;",
    "RegExp.prototype.test = function () { return 'mine' };",
    "Object.defineProperty(Array.prototype, 0, { set(v) { log(v) }, get() { return 'zero' } });",
    "Object.defineProperty(Object.prototype, 'a', { set(v) { log(v) } });",
    "String.prototype[Symbol.replace] = String.prototype[Symbol.split] = String.prototype[Symbol.match] = function (...all) { log(all); return 'strings' };",
];

impl Maker {
    pub(crate) fn matching(&mut self) -> Vec<String> {
        let expression = self.expression();
        let text = self.text();
        let mut statements = vec![format!("let r = {expression};"), format!("let t = {text};")];
        if self.chance.below(5) == 0 {
            statements.push(self.one_of(&BEFORE).to_owned());
        }
        if self.rarely() {
            let change = self.one_of(&CHANGES);
            statements.push(self.change(change));
        }
        for _ in 0..self.times(1, 5) {
            if self.chance.below(3) == 0 {
                let last = self.position();
                statements.push(Self::attempt(&format!("r.lastIndex = {last}")));
            }
            let use_ = self.use_of_expression();
            statements.push(Self::attempt(&use_));
            statements.push(Self::attempt("r.lastIndex"));
            if self.rarely() {
                statements.push(self.one_of(&BEFORE).to_owned());
            }
        }
        statements
    }

    fn use_of_expression(&mut self) -> String {
        let text = if self.often() {
            "t".to_owned()
        } else {
            self.text_or_other()
        };
        match self.chance.below(15) {
            0 | 1 => format!("r.exec({text})"),
            2 => format!("r.test({text})"),
            3 => "t.match(r)".to_owned(),
            4 => "[...t.matchAll(r)]".to_owned(),
            5..8 => {
                let by = self.expression_replacement();
                let name = self.one_of(&["replace", "replace", "replaceAll"]);
                format!("t.{name}(r, {by})")
            }
            8 | 9 => match self.chance.below(3) {
                0 => format!("t.split(r, {})", self.position()),
                _ => "t.split(r)".to_owned(),
            },
            10 => "t.search(r)".to_owned(),
            11 => {
                let name = self.one_of(&["match", "replace", "split", "search", "matchAll"]);
                let (this, by) = (self.strange_this(), self.replacement());
                format!("RegExp.prototype[Symbol.{name}].call({this}, {text}, {by})")
            }
            12 => {
                let name = self.one_of(&["exec", "test", "toString"]);
                let this = self.strange_this();
                format!("RegExp.prototype.{name}.call({this}, {text})")
            }
            13 => self.one_of(&["[r.source, r.flags]", "String(r)", "new RegExp(r).exec(t)", "new RegExp(r.source, r.flags + 'y').exec(t)"])
                .to_owned(),
            _ => "{ const all = []; let m; while ((m = r.exec(t)) && all.length < 9) { all.push(m); if (!m[0]) r.lastIndex++; } return all }"
                .to_owned()
                .replacen('{', "(() => {", 1)
                + ")()",
        }
    }

    fn strange_this(&mut self) -> String {
        match self.chance.below(4) {
            0 => self.value(),
            1 => {
                let flags = self.one_of(&["''", "'g'", "'gu'", "'y'", "undefined"]);
                format!(
                    "{{ flags: {flags}, lastIndex: 0, exec(s) {{ log('own exec'); return this.lastIndex++ ? null : {{ 0: 'a', length: 1, index: 0 }} }} }}"
                )
            }
            _ => "r".to_owned(),
        }
    }

    fn expression_replacement(&mut self) -> String {
        match self.chance.below(12) {
            0 => "(...all) => { log(r.lastIndex); r.lastIndex = 1; return all.length }".to_owned(),
            1 => "(...all) => { log(r.test('ab')); return '-' }".to_owned(),
            2 => "(...all) => { r.compile('b', 'g'); return '!' }".to_owned(),
            3 => "(...all) => { log(t.replace(r, 'in')); return '.' }".to_owned(),
            _ => self.replacement(),
        }
    }

    fn flags(&mut self) -> String {
        let mut flags = String::new();
        for (flag, of) in [('g', 2), ('i', 5), ('m', 5), ('s', 6), ('y', 6), ('d', 10)] {
            if self.chance.below(of) == 0 {
                flags.push(flag);
            }
        }
        match self.chance.below(16) {
            0..4 => flags.push('u'),
            4 => flags.push('v'),
            _ => {}
        }
        flags
    }

    fn expression(&mut self) -> String {
        let flags = self.flags();
        let is_whole = flags.contains(['u', 'v']);
        let mut pattern = Pattern {
            groups: 0,
            names: 0,
            is_whole,
            repeats: 0,
        };
        let mut source = self.alternatives(&mut pattern, 2);
        if self.rarely() {
            source = self
                .one_of(&[
                    "", "/", "\n", "a\\\nb", "\\/", "\\\\/", "[/\\]]", "\u{2028}", "\\\\n",
                    "\\\\\n",
                ])
                .to_owned();
        }
        let units: Vec<u16> = source.encode_utf16().collect();
        let made = format!("new RegExp({}, '{flags}')", quoted(&units));
        let is_literal = !source.is_empty()
            && !source.contains(['\n', '\u{2028}'])
            && !source.starts_with('*')
            && (!source.contains('/') || source.contains("\\/"));
        match self.chance.below(14) {
            0 => format!(
                "new (class R extends RegExp {{}})({}, '{flags}')",
                quoted(&units)
            ),
            1 => format!(
                "new (class R extends RegExp {{ exec(s) {{ log(this.lastIndex); return super.exec(s) }} }})({}, '{flags}')",
                quoted(&units)
            ),
            2 => format!(
                "new (class R extends RegExp {{ static get [Symbol.species]() {{ log('species'); return RegExp }} get flags() {{ log('flags'); return super.flags }} }})({}, '{flags}')",
                quoted(&units)
            ),
            3 => format!("RegExp(/{}/, '{flags}')", "a(b)?"),
            4..7 => made,
            _ if is_literal && source.is_ascii() => format!("/{source}/{flags}"),
            _ => made,
        }
    }

    fn alternatives(&mut self, pattern: &mut Pattern, depth: usize) -> String {
        let count = if self.chance.below(4) == 0 { 2 } else { 1 };
        let all: Vec<String> = (0..count).map(|_| self.sequence(pattern, depth)).collect();
        all.join("|")
    }

    fn sequence(&mut self, pattern: &mut Pattern, depth: usize) -> String {
        let mut sequence = String::new();
        for _ in 0..self.times(0, 3) {
            let term = self.term(pattern, depth);
            sequence.push_str(&term);
        }
        sequence
    }

    fn term(&mut self, pattern: &mut Pattern, depth: usize) -> String {
        if self.rarely() {
            return self.one_of(&ANCHORS).to_owned();
        }
        let (term, quantifier) = if depth > 0 && self.chance.below(3) == 0 {
            self.group(pattern, depth - 1)
        } else if self.rarely() {
            (self.reference(pattern), true)
        } else if pattern.is_whole && self.chance.below(3) == 0 {
            (self.one_of(&WHOLE_ATOMS).to_owned(), true)
        } else {
            (self.one_of(&ATOMS).to_owned(), true)
        };
        if quantifier && pattern.repeats < 3 && self.chance.below(3) == 0 {
            pattern.repeats += 1;
            // Nested repetition takes time that doubles with every letter, so it is avoided.
            let repeats = term.contains(['*', '+', '{']);
            let quantifiers = if repeats {
                &QUANTIFIERS[..2]
            } else {
                &QUANTIFIERS[..]
            };
            return format!("{term}{}", self.one_of(quantifiers));
        }
        term
    }

    fn group(&mut self, pattern: &mut Pattern, depth: usize) -> (String, bool) {
        let open = match self.chance.below(9) {
            0..4 => {
                pattern.groups += 1;
                "("
            }
            4 => "(?:",
            5 if pattern.names < 2 => {
                pattern.groups += 1;
                pattern.names += 1;
                if pattern.names == 1 { "(?<a>" } else { "(?<b>" }
            }
            6 => "(?=",
            7 => "(?!",
            _ => self.one_of(&["(?<=", "(?<!"]),
        };
        let inside = self.alternatives(pattern, depth);
        let can_repeat = !matches!(open, "(?=" | "(?!" | "(?<=" | "(?<!");
        (format!("{open}{inside})"), can_repeat)
    }

    fn reference(&mut self, pattern: &Pattern) -> String {
        match (pattern.names, pattern.groups) {
            (1.., _) => "\\k<a>".to_owned(),
            (_, 0) if pattern.is_whole => "a".to_owned(),
            (_, groups) => format!("\\{}", self.times(1, groups.max(2))),
        }
    }
}

/// The text of an expression so far.
struct Pattern {
    groups: usize,
    names: usize,
    is_whole: bool,
    repeats: usize,
}
