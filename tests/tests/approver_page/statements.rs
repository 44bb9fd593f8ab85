//! Tests the question what became of a call whose outcome is unknown.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::Case;
use crate::visit::Visit;

pub(crate) const CASES: &[(&str, Case)] = &[
    ("a_result_is_stated", a_result_is_stated),
    ("a_call_did_not_happen", a_call_did_not_happen),
    ("an_outcome_is_left_unknown", an_outcome_is_left_unknown),
    (
        "a_result_is_stated_for_a_suspended_run",
        a_result_is_stated_for_a_suspended_run,
    ),
];

/// Makes a call whose outcome is unknown, and then the same call again.
const TWICE: &str = "const lose = () => tickets.lose({ n: 1 }).catch((e) => e.code);\nconst first = await lose();\nreturn [first, await lose()];";

/// Makes the same call again only if it fails.
const RETRY: &str = "const lose = () => tickets.lose({ n: 1 });\nreturn await lose().catch(lose);";

/// Waits for a card that asks what became of a call, or for one that asks whether to allow a call.
fn asked(visit: &Visit, about_outcome: bool) -> Result<()> {
    let card = "document.querySelector('.card .outcome')";
    visit.browser.wait(&format!(
        "{card} !== null && {card}.hidden === {}",
        !about_outcome
    ))?;
    visit.asked(1)
}

/// Types a result that is not JSON, which is refused, and then a good one.
fn state_result(visit: &Visit) -> Result<()> {
    visit.browser.click(".card .result")?;
    visit.browser.press("seen")?;
    visit.browser.click(".card .happened")?;
    visit
        .browser
        .wait("document.querySelector('.card .said').innerText.includes('not JSON')")?;
    visit
        .browser
        .value("(document.querySelector('.card .result').value = '', true)")?;
    visit.browser.click(".card .result")?;
    visit.browser.press("{\"id\":7}")?;
    visit.browser.click(".card .happened")
}

fn over(visit: &Visit, state: &str) -> Result<()> {
    visit.browser.wait(&format!(
        "document.querySelector('#over').innerText.includes('{state}')"
    ))
}

fn a_result_is_stated(visit: &mut Visit) -> Result<()> {
    let running = visit.run(TWICE)?;
    visit.enter()?;
    asked(visit, false)?;
    visit.browser.click(".card .once")?;
    asked(visit, true)?;
    let card = visit.browser.text(".card")?;
    for part in [
        "What became of call",
        "may have had its effect",
        "It happened",
        "It did not happen",
        "Leave it unknown",
        "Its result as JSON",
    ] {
        ensure!(card.contains(part), "`{part}` is not shown:\n{card}");
    }
    ensure!(
        !card.contains("Allow this call"),
        "no answer allows the call:\n{card}"
    );
    visit.picture("asked")?;
    state_result(visit)?;
    ensure!(visit.value(running)? == json!(["outcome-unknown", {"id": 7}]));
    over(visit, "stated: it happened, with a result")
}

fn a_call_did_not_happen(visit: &mut Visit) -> Result<()> {
    let running = visit.run(TWICE)?;
    visit.enter()?;
    asked(visit, false)?;
    visit.browser.click(".card .once")?;
    asked(visit, true)?;
    visit.browser.click(".card .not-happened")?;
    // The call is decided, and the rule asks.
    asked(visit, false)?;
    visit.browser.click(".card .no")?;
    ensure!(visit.value(running)? == json!(["outcome-unknown", "refused"]));
    over(visit, "stated: it did not happen")
}

fn an_outcome_is_left_unknown(visit: &mut Visit) -> Result<()> {
    let running = visit.run(TWICE)?;
    visit.enter()?;
    asked(visit, false)?;
    visit.browser.click(".card .once")?;
    asked(visit, true)?;
    visit.browser.click(".card .unknown")?;
    ensure!(visit.value(running)? == json!(["outcome-unknown", "outcome-unknown"]));
    over(visit, "left unknown")
}

fn a_result_is_stated_for_a_suspended_run(visit: &mut Visit) -> Result<()> {
    // A first question opens the page.
    let running = visit.run("return await tickets.create({}).catch((e) => e.code);")?;
    visit.enter()?;
    asked(visit, false)?;
    visit.browser.click(".card .no")?;
    ensure!(visit.value(running)? == "refused");
    let paused = visit.until_suspended(RETRY, None)?;
    asked(visit, false)?;
    visit.browser.click(".card .once")?;
    over(visit, "approved; the run goes on when it is resumed")?;
    let paused = visit.until_suspended(RETRY, Some(&paused.run))?;
    asked(visit, true)?;
    let card = visit.browser.text(".card")?;
    ensure!(card.contains("Its result as JSON"), "{card}");
    ensure!(card.contains("waits without a time limit"), "{card}");
    ensure!(!card.contains("Leave it unknown"), "{card}");
    visit.picture("asked")?;
    state_result(visit)?;
    over(visit, "stated: it happened, with a result; the run goes on")?;
    let ended = visit.until_suspended(RETRY, Some(&paused.run))?;
    let value = ended.value.context("a value")?;
    ensure!(value.get() == r#"{"id":7}"#, "{value}");
    Ok(())
}
