//! The approver's page in a real browser, with a person who reads, clicks and
//! types. One browser, one page at a time; pictures of what was seen are left in
//! `<target>/approver-page`, for whoever reviews the page.

mod hostile;
mod ordinary;
mod visit;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use tests::browser::{Browser, installed};

use visit::Visit;

type Case = fn(&mut Visit) -> anyhow::Result<()>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One browser: what is seen must be this case's.
    arguments.test_threads = Some(1);
    let browser = if arguments.list { None } else { installed() };
    let cases: Vec<(&'static str, Case)> = ordinary::CASES
        .iter()
        .chain(hostile::CASES)
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
                // The line that says so is printed already.
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
