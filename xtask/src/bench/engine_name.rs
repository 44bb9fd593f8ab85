//! Selects the engine to measure, from `--engine NAME` in the arguments of a benchmark.

use anyhow::{Context, Result, bail};

/// The environment variable that selects the engine of airlock.
const VARIABLE: &str = "AIRLOCK_ENGINE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EngineName {
    Boa,
    QuickJs,
}

impl EngineName {
    /// Returns the engine, and the arguments without `--engine NAME`.
    pub(super) fn parse<'a>(words: &[&'a str]) -> Result<(Self, Vec<&'a str>)> {
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
            other => bail!("no such engine: {other}; expected boa or quickjs"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Boa => "boa",
            Self::QuickJs => "quickjs",
        }
    }

    /// Returns the environment variable for every airlock process.
    pub(super) fn variable(self) -> (&'static str, &'static str) {
        (VARIABLE, self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_is_parsed_from_words() {
        let (which, rest) = EngineName::parse(&["warm", "--engine", "quickjs", "--quick"]).unwrap();
        assert_eq!(
            (which, rest),
            (EngineName::QuickJs, vec!["warm", "--quick"])
        );
        assert_eq!(EngineName::parse(&["warm"]).unwrap().0, EngineName::Boa);
        assert!(EngineName::parse(&["--engine"]).is_err());
        assert!(EngineName::parse(&["--engine", "v8"]).is_err());
    }
}
