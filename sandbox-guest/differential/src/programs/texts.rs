//! Generates strings, and values of every kind in place of a string, a number or an object.

use std::fmt::Write;

use super::Maker;

/// Pieces of strings. They have few distinct letters, so that searches often succeed.
const PIECES: [&str; 40] = [
    "a",
    "a",
    "a",
    "b",
    "b",
    "ab",
    "c",
    ",",
    " ",
    "1",
    "12",
    "-",
    "/",
    "\\",
    "x",
    "A",
    "B",
    "\n",
    "\r\n",
    "é",
    "ÿ",
    "ß",
    "µ",
    "\u{a0}",
    "€",
    "ı",
    "İ",
    "ſ",
    "\u{212a}",
    "Σ",
    "ς",
    "\u{2028}",
    "\u{feff}",
    "😀",
    "😁",
    "$",
    "$1",
    "$&",
    "e\u{301}",
    "aaaaaaaaab",
];
const HALVES: [u16; 3] = [0xd83d, 0xde00, 0xdfff];

impl Maker {
    pub(crate) fn units(&mut self, pieces_max: usize) -> Vec<u16> {
        let count = self.times(0, pieces_max);
        let is_plain = self.chance.below(3) == 0;
        let mut units = Vec::new();
        for _ in 0..count {
            if self.chance.below(30) == 0 && !is_plain {
                let half = self.chance.below(HALVES.len());
                units.extend(HALVES.get(half));
            } else {
                let few = if is_plain { 16 } else { PIECES.len() };
                units.extend(
                    self.chance
                        .one_of(PIECES.get(..few).unwrap_or(&PIECES))
                        .encode_utf16(),
                );
            }
        }
        units
    }

    /// Returns a string literal in one of several notations.
    pub(crate) fn literal(&mut self) -> String {
        let units = self.units(8);
        quoted(&units)
    }

    /// Returns a string in any internal form: narrow or wide, whole or a part of another string.
    pub(crate) fn text(&mut self) -> String {
        let literal = self.literal();
        match self.chance.below(12) {
            0 => format!("{literal}.repeat({})", self.times(0, 20)),
            1 => format!("('€' + {literal}).slice(1)"),
            2 => format!("({literal} + {literal})"),
            3 => format!("('xx' + {literal} + 'y').slice(2, -1)"),
            4 => format!("[{literal}, {literal}].join('')"),
            5 => format!("({literal} + '-'.repeat(70) + {literal})"),
            _ => literal,
        }
    }

    /// Returns a value where a string is expected.
    pub(crate) fn text_or_other(&mut self) -> String {
        if self.rarely() {
            self.value()
        } else {
            self.text()
        }
    }

    pub(crate) fn number(&mut self) -> String {
        if self.chance.below(3) > 0 {
            return self.times(0, 12).to_string();
        }
        let odd = [
            "-0",
            "-1",
            "-5",
            "NaN",
            "Infinity",
            "-Infinity",
            "0.5",
            "2.7",
            "-0.3",
            "1e300",
            "5e-324",
            "4294967295",
            "4294967296",
            "2147483648",
            "-2147483649",
            "9007199254740991",
            "9007199254740993",
            "0.1",
            "1e21",
            "123456789012345680000",
        ];
        self.one_of(&odd).to_owned()
    }

    /// Returns a value where a number is expected, or nothing.
    pub(crate) fn position(&mut self) -> String {
        if self.rarely() {
            self.value()
        } else {
            self.number()
        }
    }

    /// Returns a value of any kind.
    pub(crate) fn value(&mut self) -> String {
        let plain = [
            "undefined",
            "null",
            "true",
            "false",
            "Symbol('s')",
            "Symbol.iterator",
            "1n",
            "-5n",
            "{}",
            "[]",
            "[1, 2]",
            "['a', 'b']",
            "() => 'f'",
            "function f() {}",
            "new Date(0)",
            "new Map([['a', 1]])",
            "new Set([1])",
            "/a/g",
            "new Error('e')",
            "Object(1)",
            "Object('ab')",
            "Object(false)",
            "Object(Symbol.iterator)",
            "Object(2n)",
            "Object.create(null)",
            "class A {}",
            "new Uint8Array([3, 1])",
            "new (class A { x = 1 })()",
            "Math",
            "[,]",
            "[[['a']]]",
            "new Proxy({}, {})",
            "new Proxy([], {})",
            "(() => { return arguments })",
        ];
        match self.chance.below(10) {
            0 => self.number(),
            1 => self.text(),
            2..5 => self.sly(),
            _ => self.one_of(&plain).to_owned(),
        }
    }

    /// Returns an object that reports when a script or a built-in converts it.
    pub(crate) fn sly(&mut self) -> String {
        let text = self.literal();
        let number = self.number();
        match self.chance.below(7) {
            0 => format!("{{ toString() {{ log('toString'); return {text} }} }}"),
            1 => format!("{{ valueOf() {{ log('valueOf'); return {number} }} }}"),
            2 => format!(
                "{{ toString() {{ log('toString'); return {text} }}, valueOf() {{ log('valueOf'); return {number} }} }}"
            ),
            3 => format!("{{ [Symbol.toPrimitive](hint) {{ log(hint); return {text} }} }}"),
            4 => "{ toString() { log('throws'); throw new RangeError('sly') } }".to_owned(),
            5 => "{ toString() { return {} }, valueOf() { log('none'); return [] } }".to_owned(),
            _ => "{ [Symbol.toPrimitive]() { log('symbol'); return Symbol('p') } }".to_owned(),
        }
    }
}

/// Returns a text in quotes.
pub(crate) fn quoted(units: &[u16]) -> String {
    let mut quoted = String::from("'");
    for unit in units {
        match u8::try_from(*unit) {
            Ok(byte) if (0x20..0x7f).contains(&byte) && byte != b'\'' && byte != b'\\' => {
                quoted.push(char::from(byte));
            }
            _ => {
                let _ = write!(quoted, "\\u{unit:04x}");
            }
        }
    }
    quoted + "'"
}
