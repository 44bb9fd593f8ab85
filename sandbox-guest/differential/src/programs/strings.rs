//! Generates uses of strings without regular expressions.

use super::Maker;

const SEARCHES: [&str; 6] = [
    "indexOf",
    "lastIndexOf",
    "includes",
    "startsWith",
    "endsWith",
    "at",
];
const CHANGES: [&str; 12] = [
    "toUpperCase()",
    "toLowerCase()",
    "trim()",
    "trimStart()",
    "trimEnd()",
    "normalize()",
    "toWellFormed()",
    "isWellFormed()",
    "length",
    "toString()",
    "split('')",
    "[Symbol.iterator]().next()",
];

impl Maker {
    pub(crate) fn searching(&mut self) -> Vec<String> {
        let text = self.text();
        let mut statements = vec![format!("let t = {text};")];
        for _ in 0..self.times(1, 5) {
            let this = self.subject();
            let use_ = match self.chance.below(10) {
                0..3 => {
                    let sought = self.sought();
                    let name = self.one_of(&SEARCHES);
                    let at = self.more_position();
                    format!("{this}.{name}({sought}{at})")
                }
                3..5 => {
                    let separator = self.sought();
                    let limit = self.more_position();
                    format!("{this}.split({separator}{limit})")
                }
                5..8 => {
                    let sought = self.sought();
                    let by = self.replacement();
                    let name = self.one_of(&["replace", "replaceAll"]);
                    format!("{this}.{name}({sought}, {by})")
                }
                8 => format!("{this}.{}", self.one_of(&CHANGES)),
                _ => {
                    let [from, to] = [(); 2].map(|()| self.position());
                    let name = self.one_of(&[
                        "slice",
                        "substring",
                        "substr",
                        "padStart",
                        "concat",
                        "repeat",
                    ]);
                    let (from, to) = if name == "repeat" || name == "padStart" {
                        (self.times(0, 9).to_string(), to)
                    } else {
                        (from, to)
                    };
                    format!("{this}.{name}({from}, {to})")
                }
            };
            statements.push(Self::attempt(&use_));
        }
        statements
    }

    /// Returns the receiver of a string function: mostly a string.
    fn subject(&mut self) -> String {
        match self.chance.below(12) {
            0 => self.text(),
            1 => {
                let value = self.value();
                let name = self.one_of(&["split", "indexOf", "replace", "includes"]);
                format!("({{ f: String.prototype.{name} }}).f.call({value}, 'a') && t")
            }
            2 => "Object(t)".to_owned(),
            3 => "t.slice(1)".to_owned(),
            _ => "t".to_owned(),
        }
    }

    /// Returns a part of the string, or something similar.
    fn sought(&mut self) -> String {
        match self.chance.below(8) {
            0 => "t".to_owned(),
            1 | 2 => {
                let [from, to] = [(); 2].map(|()| self.times(0, 9));
                format!("t.slice({from}, {to})")
            }
            3 => "''".to_owned(),
            4 => self.value(),
            5 => {
                let name = self.one_of(&["split", "replace", "match", "search", "matchAll"]);
                format!(
                    "{{ [Symbol.{name}](...all) {{ log(all); return 'own' }}, toString() {{ log('text'); return 'a' }} }}"
                )
            }
            _ => self.text(),
        }
    }

    fn more_position(&mut self) -> String {
        match self.chance.below(2) {
            0 => String::new(),
            _ => format!(", {}", self.position()),
        }
    }

    /// Returns a replacement.
    pub(crate) fn replacement(&mut self) -> String {
        match self.chance.below(10) {
            0..5 => {
                let pieces = [
                    "$", "$$", "$&", "$`", "$'", "$1", "$2", "$3", "$10", "$01", "$00", "$0",
                    "$99", "$<a>", "$<b>", "$<", "$<a", "x", "-", "€", "$ ", "$011", "$<>",
                ];
                let mut text = String::new();
                for _ in 0..self.times(0, 5) {
                    text.push_str(self.one_of(&pieces));
                }
                let units: Vec<u16> = text.encode_utf16().collect();
                super::texts::quoted(&units)
            }
            5 | 6 => "(...all) => { log(all); return '<' + all[0] + '>' }".to_owned(),
            7 => {
                let value = self.value();
                format!("(...all) => {{ log(all.length); return {value} }}")
            }
            8 => self.value(),
            _ => "() => { throw new RangeError('replacing') }".to_owned(),
        }
    }
}
