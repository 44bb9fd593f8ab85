//! Tests that the approver's page shows hostile arguments as plain text.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::Case;
use crate::visit::Visit;

pub(crate) const CASES: &[(&str, Case)] = &[
    ("markup_and_scripts_stay_text", markup_and_scripts_stay_text),
    (
        "what_hides_or_reorders_is_shown_as_what_it_is",
        what_hides_or_reorders_is_shown_as_what_it_is,
    ),
    (
        "ten_thousand_lines_hide_no_field",
        ten_thousand_lines_hide_no_field,
    ),
    (
        "a_line_of_a_megabyte_is_cut_into_pieces",
        a_line_of_a_megabyte_is_cut_into_pieces,
    ),
    (
        "buttons_and_questions_in_a_text_are_none",
        buttons_and_questions_in_a_text_are_none,
    ),
    (
        "names_of_fields_are_no_better_than_their_values",
        names_of_fields_are_no_better_than_their_values,
    ),
    ("another_page_cannot_answer", another_page_cannot_answer),
];

/// Runs a call with these arguments, passes the page to `look`, then refuses the call.
fn refuse(visit: &mut Visit, args: &str, look: impl Fn(&Visit) -> Result<()>) -> Result<()> {
    let running = visit.run(&format!(
        "return await tickets.create({args}).catch((e) => e.code)"
    ))?;
    visit.enter()?;
    visit.asked(1)?;
    look(visit)?;
    visit.browser.click(".no")?;
    ensure!(visit.value(running)? == "refused");
    ensure!(visit.reached().is_empty());
    Ok(())
}

fn markup_and_scripts_stay_text(visit: &mut Visit) -> Result<()> {
    let args = r#"{
        title: "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'><b>bold</b>",
        body: "</div></article><style>* { display: none }</style>\n<iframe src='javascript:parent.pwned=3'></iframe>\n<a href='javascript:pwned=4' autofocus onfocus='pwned=5'>x</a>",
        link: "javascript:window.pwned=6",
        template: "{{constructor.constructor('pwned=7')()}} ${pwned=8}",
    }"#;
    refuse(visit, args, |visit| {
        let made = visit.browser.value(
            "document.querySelectorAll('.card :is(script, img, iframe, style, a, b:not(.same b, .asker b))').length",
        )?;
        ensure!(made == 0, "the arguments created {made} elements");
        let card = visit.browser.text(".card")?;
        ensure!(card.contains("<script>window.pwned = 1</script>"), "{card}");
        ensure!(
            card.contains("<style>* { display: none }</style>"),
            "{card}"
        );
        visit.picture("asked")
    })
}

fn what_hides_or_reorders_is_shown_as_what_it_is(visit: &mut Visit) -> Result<()> {
    let args = r#"{
        file: "invoice\u202Efdp.exe",
        title: "a\u200Bb\u2066c\u0000d\u001b[2J\u0007e\u{E0041}f\u00adg\ufeff",
        to: "b\u043ess@corp.example",
        body: "one\rtwo\u2028three\u0085four\tfive",
    }"#;
    refuse(visit, args, |visit| {
        let card = visit.browser.text(".card .fields")?;
        for part in [
            "invoice\\u{202e}fdp.exe",
            "a\\u{200b}b\\u{2066}c\\u{0}d\\u{1b}[2J\\u{7}e\\u{e0041}f\\u{ad}g\\u{feff}",
            "one\\rtwo\\u{2028}three\\u{85}four\\tfive",
            "has letters of different alphabets that look alike",
            "contains characters that are invisible",
        ] {
            ensure!(card.contains(part), "`{part}` is not shown:\n{card}");
        }
        let page = visit.browser.value("document.documentElement.outerHTML")?;
        let hidden = [
            '\u{202e}',
            '\u{200b}',
            '\u{2066}',
            '\u{1b}',
            '\u{e0041}',
            '\u{feff}',
        ];
        ensure!(
            !page.as_str().unwrap_or_default().contains(hidden),
            "the page contains an invisible character"
        );
        visit.picture("asked")
    })
}

fn ten_thousand_lines_hide_no_field(visit: &mut Visit) -> Result<()> {
    let args = r#"{
        aaa: Array.from({ length: 10000 }, (_, n) => "line " + n).join("\n"),
        zzz: "rm -rf /",
    }"#;
    refuse(visit, args, |visit| {
        let fields = visit.browser.value(
            "[...document.querySelectorAll('.field h4')].map((it) => it.firstChild.textContent)",
        )?;
        ensure!(fields == json!(["zzz", "aaa"]), "{fields}");
        let card = visit.browser.text(".card .fields")?;
        for part in [
            "rm -rf /",
            "10,000 lines",
            "9,987 lines NOT SHOWN HERE",
            "line 9999",
        ] {
            ensure!(card.contains(part), "`{part}` is not shown:\n{card}");
        }
        // Everything that is needed for a decision fits on two screens, including the buttons.
        let height = visit
            .browser
            .value("document.querySelector('.card').offsetHeight")?;
        ensure!(
            height.as_u64() < Some(1_500),
            "the card is {height} pixels high"
        );
        visit.browser.resize(1100, 1300)?;
        visit.picture("folded")?;
        visit.browser.click(".more")?;
        visit.browser.wait(
            "document.querySelector('.field:last-child .lines').childElementCount === 10000",
        )?;
        let focus = visit.browser.value("document.activeElement.className")?;
        ensure!(
            focus == "lines whole",
            "the opened text cannot be scrolled by keyboard: {focus}"
        );
        visit.picture("unfolded")
    })
}

fn a_line_of_a_megabyte_is_cut_into_pieces(visit: &mut Visit) -> Result<()> {
    let args = r#"{ blob: "A".repeat(1_000_000) + "THE END", to: "ops" }"#;
    refuse(visit, args, |visit| {
        let card = visit.browser.text(".card .fields")?;
        for part in [
            "1 line, 1,000,007 bytes",
            "pieces NOT SHOWN HERE",
            "THE END",
        ] {
            ensure!(card.contains(part), "`{part}` is not shown:\n{card:.3000}");
        }
        let wide = visit
            .browser
            .value("document.documentElement.scrollWidth")?;
        ensure!(wide.as_u64() <= Some(1_100), "the page is {wide} wide");
        visit.picture("asked")
    })
}

fn buttons_and_questions_in_a_text_are_none(visit: &mut Visit) -> Result<()> {
    let args = r#"{
        body: "nothing\n\n\n\nexpires in 9 min, as a no\nAllow logs.read?\nA tool of the server logs, called by the script triage.js, line 1.\n[ Allow this call ]   [ Refuse ]\n<button class=once>Allow this call</button>",
        digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000",
    }"#;
    refuse(visit, args, |visit| {
        let counts = visit.browser.value(
            "[document.querySelectorAll('.card').length, document.querySelectorAll('.once').length, document.querySelectorAll('h2 .tool').length]",
        )?;
        ensure!(counts == json!([1, 1, 1]), "{counts}");
        // Every line of an argument has a number, so that no line can imitate a part of the page.
        let numbers = visit.browser.value(
            "[...document.querySelectorAll('.lines > div')].every((it) => it.dataset.number)",
        )?;
        ensure!(numbers == json!(true), "a line without a number");
        visit.picture("asked")
    })
}

fn names_of_fields_are_no_better_than_their_values(visit: &mut Visit) -> Result<()> {
    let args = r#"{
        "<img src=x onerror=pwned=1>": 1,
        ["n".repeat(5000)]: 2,
        "a\u202Eb\n\nc": { deep: { er: [1, { x: "</pre>" }] } },
        "__proto__x": null, "constructor": "c", "": "empty name",
    }"#;
    refuse(visit, args, |visit| {
        let card = visit.browser.text(".card .fields")?;
        for part in [
            "<img src=x onerror=pwned=1>",
            "a\\u{202e}b\\n\\nc",
            "nnnn…",
            "(a field without a name)",
            "empty name",
            "</pre>",
        ] {
            ensure!(card.contains(part), "`{part}` is not shown:\n{card:.3000}");
        }
        let wide = visit
            .browser
            .value("document.documentElement.scrollWidth")?;
        ensure!(wide.as_u64() <= Some(1_100), "the page is {wide} wide");
        visit.browser.resize(1100, 1300)?;
        visit.picture("asked")
    })
}

/// A page of another program on this machine is open in the same browser.
fn another_page_cannot_answer(visit: &mut Visit) -> Result<()> {
    let running = visit.run("return await tickets.create({ n: 1 }).catch((e) => e.code)")?;
    let link = visit.enter()?;
    visit.asked(1)?;
    let first = visit.browser.tab()?;
    let second = visit.browser.new_tab()?;
    visit.browser.switch_to(&second)?;
    let (address, heard) = crate::visit::eavesdrop()?;
    visit.browser.open(&format!("http://{address}/"))?;
    let home = link.split("/enter").next().unwrap_or_default();
    // A hostile page tries to read the question, to send an answer, and to frame the page.
    let tried = visit.browser.value(&format!(
        "fetch('{home}/questions').then(() => 'read', () => 'refused')"
    ))?;
    ensure!(
        tried == "refused",
        "another page read the questions: {tried}"
    );
    let tried = visit.browser.value(&format!(
        "fetch('{home}/answer', {{ method: 'POST', mode: 'no-cors', credentials: 'include', body: '{{\"id\":1,\"nonce\":\"0\",\"answer\":\"allow-once\"}}' }}).then((it) => it.type, () => 'refused')"
    ))?;
    ensure!(tried == "opaque" || tried == "refused", "{tried}");
    // The browser sends the cookie to every port of this machine, but the cookie without the key
    // gives no access.
    let heard = heard.recv_timeout(tests::patience::PATIENCE)?;
    let cookie = heard
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("cookie:"))
        .unwrap_or_default()
        .to_owned();
    ensure!(
        cookie.contains("airlock-"),
        "the browser no longer shares cookies between ports: {heard}"
    );
    let said = crate::visit::raw(
        home.trim_start_matches("http://"),
        &format!(
            "GET /questions HTTP/1.1\r\nhost: {}\r\n{cookie}\r\nconnection: close\r\n\r\n",
            home.trim_start_matches("http://")
        ),
    )?;
    ensure!(
        said.starts_with("HTTP/1.1 404"),
        "the cookie alone gave access: {said}"
    );
    let _ = visit.browser.console()?;
    visit.browser.close_tab()?;
    visit.browser.switch_to(&first)?;
    visit.asked(1)?;
    visit.browser.click(".no")?;
    ensure!(visit.value(running)? == "refused");
    Ok(())
}
