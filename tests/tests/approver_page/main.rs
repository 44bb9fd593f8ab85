//! Tests the approver's page in a real browser, as a person would use it. One browser shows one
//! page at a time. Screenshots are saved in `<target>/approver-page` for reviewers of the page.

mod hostile;
mod ordinary;
mod statements;
mod visit;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use tests::browser::{Browser, installed};

use visit::Visit;

type Case = fn(&mut Visit) -> anyhow::Result<()>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // All tests share one browser, so only one test runs at a time.
    arguments.test_threads = Some(1);
    let browser = if arguments.list { None } else { installed() };
    let cases: Vec<(&'static str, Case)> = ordinary::CASES
        .iter()
        .chain(hostile::CASES)
        .chain(statements::CASES)
        .copied()
        .collect();
    let browser = browser.map(|found| Arc::new(Browser::start(&found).expect("a browser")));
    let trials = cases
        .into_iter()
        .map(|(name, case)| {
            let browser = browser.clone();
            Trial::test(name, move || match browser {
                Some(browser) => {
                    play(name, case, &browser).map_err(|e| Failed::from(format!("{e:#}")))
                }
                // `installed` has printed the `SKIP:` line.
                None => Ok(()),
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn play(name: &'static str, case: Case, browser: &Arc<Browser>) -> anyhow::Result<()> {
    let mut visit = Visit::start(name, browser)?;
    case(&mut visit)?;
    visit.nothing_broke()
}
