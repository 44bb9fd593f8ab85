//! Which of our engines is measured: `--engine NAME` among the words of a bench.

use anyhow::{Context, Result, bail};

/// How the program itself names the choice.
const VARIABLE: &str = "AIRLOCK_ENGINE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Boa,
    QuickJs,
}

impl Which {
    /// The engine, and the words without it.
    pub(super) fn of<'a>(words: &[&'a str]) -> Result<(Self, Vec<&'a str>)> {
        let mut rest = words.to_vec();
        let Some(at) = rest.iter().position(|word| *word == "--engine") else {
            return Ok((Self::Boa, rest));
        };
        rest.remove(at);
        let name = rest.get(at).copied().context("--engine needs a name")?;
        rest.remove(at);
        match name {
            "boa" => Ok((Self::Boa, rest)),
            "quickjs" => Ok((Self::QuickJs, rest)),
            other => bail!("no such engine: {other}; there are boa and quickjs"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Boa => "boa",
            Self::QuickJs => "quickjs",
        }
    }

    /// For the environment of everything of ours that is started.
    pub(super) fn variable(self) -> (&'static str, &'static str) {
        (VARIABLE, self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_taken_out_of_the_words() {
        let (which, rest) = Which::of(&["warm", "--engine", "quickjs", "--quick"]).unwrap();
        assert_eq!((which, rest), (Which::QuickJs, vec!["warm", "--quick"]));
        assert_eq!(Which::of(&["warm"]).unwrap().0, Which::Boa);
        assert!(Which::of(&["--engine"]).is_err());
        assert!(Which::of(&["--engine", "v8"]).is_err());
    }
}
