//! Generates scripts. Programs for the built-ins that guests replace come from [`super::programs`];
//! a grammar, `tests/engines/grammar.txt`, writes everything else.

mod grammar;
mod writer;

use super::programs::Program;
use super::rng::Rng;
use writer::Writer;

/// Prelude of each script: functions that print the values that the script sees.
const TELLER: &str = include_str!("teller.js");

/// One script as a list of statements. Any of the statements can be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedScript {
    pub statements: Vec<String>,
    /// Whether the statements are the body of a function that is not async.
    is_program: bool,
    is_typed: bool,
}

/// The subjects of scripts, each with its share in percent.
const FAMILIES: [(&str, usize); 7] = [
    ("language", 16),
    ("waiting", 13),
    ("calls", 12),
    ("console", 4),
    ("builtins", 12),
    ("corners", 16),
    ("idioms", 12),
];
/// Percentage of scripts with types. The remaining scripts, after all shares, are programs from
/// [`super::programs`].
const TYPED: usize = 3;

impl GeneratedScript {
    /// Generates the script with this number.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut chance = Rng::new(seed ^ 0xa11e_0000_0000_0000);
        let mut lot = chance.below(100);
        for (family, of_hundred) in FAMILIES {
            if lot < of_hundred {
                return Self::written(Writer::new(chance), family, false);
            }
            lot -= of_hundred;
        }
        if lot < TYPED {
            return Self::written(Writer::new(chance), "types", true);
        }
        let program = Program::from_seed(seed);
        // Each engine has its own error messages.
        let quiet = |text: String| text.replace("log(e?.message)", "log(typeof e?.message)");
        Self {
            statements: program.statements.into_iter().map(quiet).collect(),
            is_program: !program.is_script,
            is_typed: false,
        }
    }

    fn written(mut writer: Writer, family: &str, is_typed: bool) -> Self {
        Self {
            statements: writer.statements(family),
            is_program: false,
            is_typed,
        }
    }

    /// Reads a script from the text of its file.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let statements = text.lines().filter(|line| !line.starts_with("//"));
        Self {
            statements: vec![statements.collect::<Vec<_>>().join("\n")],
            is_program: text.starts_with("// program"),
            is_typed: text.starts_with("// types"),
        }
    }

    /// Returns the text of the file for this script.
    #[must_use]
    pub fn kept(&self) -> String {
        let kind = match (self.is_program, self.is_typed) {
            (true, _) => "// program\n",
            (_, true) => "// types\n",
            _ => "",
        };
        format!("{kind}{}\n", self.statements.join("\n"))
    }

    /// Returns the same script with other statements.
    #[must_use]
    pub(super) fn with(&self, statements: Vec<String>) -> Self {
        Self {
            statements,
            ..self.clone()
        }
    }

    /// Returns the script for the engines, without types.
    #[must_use]
    pub fn script(&self) -> String {
        let statements = self.statements.join("\n");
        let whole = match self.is_program {
            true => format!("{TELLER}attempt(() => {{\n{statements}\n}});"),
            false => format!("{TELLER}{statements}"),
        };
        match self.is_typed {
            true => untyped(whole),
            false => whole,
        }
    }
}

fn untyped(script: String) -> String {
    let table = codegen::stub::StubTable::default();
    let surface = codegen::check::Surface::new(&table, &[]);
    let Ok(checker) = airlock::sandbox::Checker::embedded() else {
        return script;
    };
    let limits = airlock::sandbox::CheckLimits::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let checked =
        runtime.map(|it| it.block_on(checker.check("script.ts", &script, &surface, &limits)));
    checked.ok().and_then(|it| it.0.blanked).unwrap_or(script)
}
