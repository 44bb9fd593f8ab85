//! The check of a script, on a stack that is large enough for it. The parser
//! recurses; a script that nests little is checked where it is, any other on a
//! thread of its own, whose stack is only reserved and costs what is used of it.

use codegen::check::{self, Checked, STACK_BYTES_MIN, Surface, Weight};
use codegen::watch::{self, Followed, Look, Secret, Watched};

/// The check could not be made for want of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no thread can be started that the script could be checked on")]
pub(crate) struct NoThread;

pub(crate) fn check(name: &str, text: &str, surface: Surface<'_>) -> Result<Checked, NoThread> {
    on_deep_stack(text, || check::check(name, text, &surface))
}

/// The watched form of a script, for a second look; `None` when it cannot be had.
pub(crate) fn watch(script: &str, look: Look) -> Option<Watched> {
    let secret = secret()?;
    on_deep_stack(script, || watch::watch(script, secret, look)).ok()?
}

/// The script as one that says where it is, for a second look at one that met a limit.
pub(crate) fn follow(script: &str, from: Option<u64>) -> Option<Followed> {
    let secret = secret()?;
    on_deep_stack(script, || watch::follow(script, secret, from)).ok()?
}

/// What a server whose answers the script prints cannot know.
fn secret() -> Option<Secret> {
    getrandom::u64().map(Secret).ok()
}

fn on_deep_stack<T: Send>(text: &str, parse: impl FnOnce() -> T + Send) -> Result<T, NoThread> {
    if Weight::of(text).is_light() {
        return Ok(parse());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("check".into())
            .stack_size(STACK_BYTES_MIN);
        let running = thread.spawn_scoped(scope, parse);
        running.map_err(|_| NoThread)?.join().map_err(|_| NoThread)
    })
}

#[cfg(test)]
mod tests {
    use codegen::check::FindingCode;
    use codegen::stub::StubTable;

    use super::*;

    #[test]
    fn a_script_at_the_bounds_is_checked_and_one_beyond_them_is_refused() {
        let table = StubTable::default();
        let code = |text: String| {
            let checked = check("a.ts", &text, Surface::new(&table, &[])).unwrap();
            checked.first_error().map(|it| it.code)
        };
        let nested = |open: &str, close: &str, times: usize| {
            format!("return {}1{};", open.repeat(times), close.repeat(times))
        };
        assert_eq!(code(nested("(", ")", 190)), None);
        assert_eq!(code(nested("[", "]", 190)), None);
        assert_eq!(
            code(nested("(x = ", ")", 190)),
            Some(FindingCode::UnknownName)
        );
        let chained = |piece: &str, times: usize| code(format!("let a; {}1;", piece.repeat(times)));
        for (piece, times) in [
            ("1+", 5_900),
            ("a=", 5_900),
            ("1?2:", 2_900),
            ("!", 390),
            ("()=>", 300),
            ("while(0)", 2_900),
            ("if(0)a=1;else ", 5_900),
            ("if(0){a=1}else ", 5_900),
        ] {
            assert_eq!(chained(piece, times), None, "{piece}");
            assert_eq!(
                chained(piece, 100_000),
                Some(FindingCode::TooDeep),
                "{piece}"
            );
        }
        for piece in [".a", "()", "[0]", "?.a", "``", " as any"] {
            assert_eq!(
                code(format!("let a; a{}", piece.repeat(2_900))),
                None,
                "{piece}"
            );
        }
        let types = "A<".repeat(5_900);
        assert_eq!(code(format!("let x: {types}1;")), Some(FindingCode::Syntax));
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{", "}"),
            ("`${", "}`"),
            ("(()=>", ")"),
        ] {
            let deep = nested(open, close, 100_000);
            assert_eq!(code(deep), Some(FindingCode::TooDeep), "{open}");
        }
    }
}
