//! Tests the ordinary use of the page.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::Case;
use crate::visit::Visit;

pub(crate) const CASES: &[(&str, Case)] = &[
    ("one_call_is_approved", one_call_is_approved),
    (
        "several_calls_are_approved_at_once",
        several_calls_are_approved_at_once,
    ),
    ("what_stays_equal_is_chosen", what_stays_equal_is_chosen),
    (
        "each_part_of_a_field_is_chosen_by_itself",
        each_part_of_a_field_is_chosen_by_itself,
    ),
    ("a_call_is_refused", a_call_is_refused),
    ("a_question_expires", a_question_expires),
    (
        "a_second_answer_is_refused_politely",
        a_second_answer_is_refused_politely,
    ),
    ("two_tabs_show_the_same", two_tabs_show_the_same),
    ("a_link_is_good_once", a_link_is_good_once),
    ("the_keyboard_is_enough", the_keyboard_is_enough),
    (
        "nothing_is_approved_by_a_card_that_moved_up",
        nothing_is_approved_by_a_card_that_moved_up,
    ),
    (
        "a_narrow_window_hides_nothing",
        a_narrow_window_hides_nothing,
    ),
];

const CREATE: &str = "const told = await tickets.create({ project: 'OPS', title: 'disk is full', body: 'see the log' })\n  .then(() => 'made', (e) => e.code);\nreturn told;";
const TWENTY: &str = "const all = Array.from({ length: 20 }, (_, n) => tickets.create({ project: 'OPS', title: 'ticket ' + n }));\nconst told = await Promise.allSettled(all);\nreturn told.filter((it) => it.status === 'fulfilled').length;";
const SEND: &str = "const mail = await mail_read({ id: 7 });\nreturn await mail_send({ to: mail.from, subject: 'as you asked', body: mail.text })\n  .then(() => 'sent', (e) => e.code);";

fn one_call_is_approved(visit: &mut Visit) -> Result<()> {
    let running = visit.run(CREATE)?;
    visit.enter()?;
    visit.asked(1)?;
    let card = visit.browser.text(".card")?;
    for part in [
        "tickets.create",
        "of the server tickets",
        "triage.js, line 1",
        "disk is full",
        "expires in",
        "changes something",
        "no labelled data",
        "by the labels, this call shows the data to no one else",
    ] {
        ensure!(card.contains(part), "`{part}` is not shown:\n{card}");
    }
    visit.picture("asked")?;
    visit.browser.prefer("dark")?;
    visit.picture("dark")?;
    visit.browser.click(".once")?;
    visit
        .browser
        .wait("document.querySelector('#over').innerText.includes('approved')")?;
    visit.picture("answered")?;
    ensure!(visit.value(running)? == "made");
    ensure!(visit.reached().len() == 1);
    Ok(())
}

fn several_calls_are_approved_at_once(visit: &mut Visit) -> Result<()> {
    let running = visit.run(TWENTY)?;
    visit.enter()?;
    visit.asked(20)?;
    visit.browser.click(".card summary")?;
    let covers = visit.browser.text(".card .covers")?;
    for part in [
        "where project stays equal",
        "title may be anything",
        "an hour",
        "ends with the run",
    ] {
        ensure!(covers.contains(part), "`{part}` is not shown:\n{covers}");
    }
    visit.browser.resize(1100, 1400)?;
    visit.picture("asked")?;
    visit.browser.click(".card .some")?;
    ensure!(visit.value(running)? == 20);
    ensure!(visit.reached().len() == 20);
    Ok(())
}

fn what_stays_equal_is_chosen(visit: &mut Visit) -> Result<()> {
    let script = "const told = [];\nfor (const title of ['a', 'a', 'b']) told.push(await tickets.create({ project: 'OPS', title }).then(() => 'made', (e) => e.code));\nreturn told;";
    let running = visit.run(script)?;
    visit.enter()?;
    visit.asked(1)?;
    visit.browser.click(".card summary")?;
    let title = ".same label:nth-of-type(2) input";
    let order = visit
        .browser
        .value("[...document.querySelectorAll('.same input')].map((it) => it.value)")?;
    let at = order
        .as_array()
        .and_then(|fields| fields.iter().position(|it| it == "/title"))
        .unwrap_or_default();
    let title = title.replace('2', &(at + 1).to_string());
    // The grant keeps the title fixed, whatever scope the page proposed.
    if visit
        .browser
        .value(&format!("document.querySelector('{title}').checked"))?
        == json!(false)
    {
        visit.browser.click(&title)?;
    }
    visit
        .browser
        .wait("!document.querySelector('.covers').innerText.includes('may be anything')")?;
    visit.picture("chosen")?;
    visit.browser.click(".card .some")?;
    // The third call has another title, so it needs approval.
    visit
        .browser
        .wait("document.querySelector('.card .fields')?.innerText.includes('\\nb')")?;
    visit.asked(1)?;
    visit.browser.click(".card .no")?;
    ensure!(visit.value(running)? == json!(["made", "made", "refused"]));
    Ok(())
}

/// The script contains the subject as a literal, but not the recipients.
fn each_part_of_a_field_is_chosen_by_itself(visit: &mut Visit) -> Result<()> {
    let script = "const told = [];\nfor (const to of ['a', 'b'].map((it) => it + '@x.example')) told.push(await mail.send({ message: { to, subject: 'Report' } }).then(() => 'sent', (e) => e.code));\nreturn told;";
    let running = visit.run(script)?;
    visit.enter()?;
    visit.asked(1)?;
    visit.browser.click(".card summary")?;
    let covers = visit.browser.text(".card .covers")?;
    for part in [
        "where message › subject stays equal",
        "message › to may be anything",
    ] {
        ensure!(covers.contains(part), "`{part}` is not shown:\n{covers}");
    }
    visit.picture("proposed")?;
    visit.browser.click(".same input[value='/message/to']")?;
    visit
        .browser
        .wait("document.querySelector('.covers').innerText.includes('where message › subject, message › to stay equal')")?;
    visit.browser.click(".card .some")?;
    // The second recipient is different, so the call needs approval.
    visit
        .browser
        .wait("document.querySelector('.card .fields')?.innerText.includes('b@x.example')")?;
    visit.asked(1)?;
    visit.browser.click(".card .no")?;
    ensure!(visit.value(running)? == json!(["sent", "refused"]));
    ensure!(visit.reached().len() == 1);
    Ok(())
}

fn a_call_is_refused(visit: &mut Visit) -> Result<()> {
    let running = visit.run(SEND)?;
    visit.enter()?;
    visit.asked(1)?;
    let card = visit.browser.text(".card")?;
    for part in [
        "eve@evil.example: not named by your configuration, your script or a trusted result",
        "untrusted and private data together",
        "repeats what call 1 returned",
        "needs its own answer",
        "Allow exactly this call?",
        "flow-untrusted-chooses",
    ] {
        ensure!(card.contains(part), "`{part}` is not shown:\n{card}");
    }
    let shown = visit
        .browser
        .value("getComputedStyle(document.querySelector('.like')).display")?;
    ensure!(
        shown == "none",
        "a grant is offered for a tool that must be asked about each time"
    );
    visit.browser.resize(1100, 1300)?;
    visit.picture("asked")?;
    visit.browser.click(".no")?;
    ensure!(visit.value(running)? == "refused");
    ensure!(visit.reached().is_empty());
    Ok(())
}

fn a_question_expires(visit: &mut Visit) -> Result<()> {
    // If the browser starts slowly, the question may already have expired.
    expires(visit, 6_000).or_else(|_| expires(visit, 30_000))
}

fn expires(visit: &mut Visit, ask_wall_ms_max: u64) -> Result<()> {
    visit.serve(ask_wall_ms_max)?;
    let running = visit.run(CREATE)?;
    visit.enter()?;
    visit
        .browser
        .wait("document.querySelector('.expires.soon')?.innerText.startsWith('expires in')")?;
    visit.picture("soon")?;
    visit
        .browser
        .wait("document.querySelector('#over').innerText.includes('no longer asked')")?;
    ensure!(
        visit
            .browser
            .value("document.querySelectorAll('.card').length")?
            == 0
    );
    visit.picture("over")?;
    ensure!(visit.value(running)? == "unanswered");
    ensure!(visit.reached().is_empty());
    Ok(())
}

fn a_second_answer_is_refused_politely(visit: &mut Visit) -> Result<()> {
    let running = visit.run(CREATE)?;
    visit.enter()?;
    visit.asked(1)?;
    let first = visit.browser.tab()?;
    let second = visit.browser.new_tab()?;
    visit.browser.switch_to(&second)?;
    let home = visit.browser_home(&first)?;
    visit.browser.switch_to(&second)?;
    visit.browser.open(&home)?;
    visit.asked(1)?;
    // This tab ignores further updates, as if they arrived late.
    visit.browser.value("(window.show = () => {}, true)")?;
    visit.browser.switch_to(&first)?;
    visit.browser.click(".no")?;
    ensure!(visit.value(running)? == "refused");
    visit.browser.switch_to(&second)?;
    visit.browser.click(".once")?;
    visit
        .browser
        .wait("!document.querySelector('#notice').hidden")?;
    let notice = visit.browser.text("#notice")?;
    ensure!(
        notice.contains("this question is no longer open; nothing was allowed"),
        "{notice}"
    );
    visit.picture("late")?;
    visit.browser.close_tab()?;
    visit.browser.switch_to(&first)?;
    ensure!(visit.reached().is_empty());
    Ok(())
}

fn two_tabs_show_the_same(visit: &mut Visit) -> Result<()> {
    let running = visit.run(CREATE)?;
    visit.enter()?;
    visit.asked(1)?;
    let first = visit.browser.tab()?;
    let home = visit.browser_home(&first)?;
    let second = visit.browser.new_tab()?;
    visit.browser.switch_to(&second)?;
    visit.browser.open(&home)?;
    visit.asked(1)?;
    visit.browser.click(".once")?;
    ensure!(visit.value(running)? == "made");
    visit
        .browser
        .wait("document.querySelector('#over').innerText.includes('approved')")?;
    visit.browser.close_tab()?;
    visit.browser.switch_to(&first)?;
    visit
        .browser
        .wait("document.querySelector('#over').innerText.includes('approved')")?;
    ensure!(
        visit.reached().len() == 1,
        "the call was not made exactly once"
    );
    Ok(())
}

fn a_link_is_good_once(visit: &mut Visit) -> Result<()> {
    let running = visit.run(CREATE)?;
    let link = visit.enter()?;
    visit.asked(1)?;
    let address = visit.browser.value("location.href")?;
    ensure!(
        !address.as_str().unwrap_or_default().contains(['#', '?']),
        "the address still contains the key: {address}"
    );
    visit.browser.open(&link)?;
    let text = visit.browser.text("body")?;
    ensure!(text.contains("This link was used"), "{text}");
    visit.picture("used")?;
    // The browser that opened the page can continue to use it.
    let home = link.split("/enter").next().unwrap_or_default();
    visit.browser.open(&format!("{home}/"))?;
    visit.asked(1)?;
    visit.browser.click(".no")?;
    ensure!(visit.value(running)? == "refused");
    // The browser's console contains only the message about the used link.
    let console = visit.browser.console()?;
    ensure!(
        console.iter().all(|line| line.contains("410")),
        "{console:?}"
    );
    Ok(())
}

fn the_keyboard_is_enough(visit: &mut Visit) -> Result<()> {
    const TAB: &str = "\u{e004}";
    const SPACE: &str = " ";
    let running = visit.run(TWENTY)?;
    visit.enter()?;
    visit.asked(20)?;
    let focused = |visit: &Visit| -> Result<String> {
        let shown = visit
            .browser
            .value("document.activeElement.className + '|' + document.activeElement.localName")?;
        Ok(shown.as_str().unwrap_or_default().to_owned())
    };
    let mut way = Vec::new();
    while !focused(visit)?.contains("summary") {
        visit.browser.press(TAB)?;
        way.push(focused(visit)?);
        ensure!(way.len() < 10, "the way by keyboard: {way:?}");
    }
    ensure!(way == ["once|button", "no|button", "|summary"], "{way:?}");
    visit.browser.press(SPACE)?;
    while !focused(visit)?.contains("some") {
        visit.browser.press(TAB)?;
        way.push(focused(visit)?);
        ensure!(way.len() < 10, "the way by keyboard: {way:?}");
    }
    let ring = visit
        .browser
        .value("getComputedStyle(document.activeElement).outlineStyle")?;
    ensure!(ring == "solid", "the focused element is not marked");
    visit.picture("focus")?;
    visit.browser.press(SPACE)?;
    ensure!(visit.value(running)? == 20);
    Ok(())
}

fn nothing_is_approved_by_a_card_that_moved_up(visit: &mut Visit) -> Result<()> {
    let script = "const all = [1, 2].map((n) => tickets.create({ n }));\nconst told = await Promise.allSettled(all);\nreturn told.map((it) => it.reason?.code ?? 'made');";
    let running = visit.run(script)?;
    visit.enter()?;
    visit.asked(2)?;
    // A double click: the second click hits the element that has moved under the pointer.
    visit.browser.value(
        "(() => { document.querySelector('.card .once').click(); \
          new MutationObserver(() => document.querySelector('.card .once')?.click()) \
            .observe(document.querySelector('#open'), { childList: true }); return true; })()",
    )?;
    visit.asked(1)?;
    ensure!(visit.reached().len() == 1, "{:?}", visit.reached());
    visit.browser.click(".card .no")?;
    ensure!(visit.value(running)? == json!(["made", "refused"]));
    Ok(())
}

fn a_narrow_window_hides_nothing(visit: &mut Visit) -> Result<()> {
    visit.browser.resize(360, 740)?;
    let running = visit.run(SEND)?;
    visit.enter()?;
    visit.asked(1)?;
    let wide = visit
        .browser
        .value("document.documentElement.scrollWidth")?;
    ensure!(
        wide.as_u64() <= Some(360),
        "the page is {wide} wide, and the window 360"
    );
    visit.picture("asked")?;
    visit.browser.click(".once")?;
    ensure!(visit.value(running)? == "sent");
    Ok(())
}
