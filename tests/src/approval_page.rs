//! A person at the approver's page, without a browser: the program that airlock starts as the
//! browser keeps the page that it is to open, and the test answers the question behind it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::command::Home;
use crate::patience::wait_until;
use crate::serving::request;

const SCRIPT: &str =
    "#!/bin/sh\ndir=$(dirname \"$0\")\ncp \"$1\" \"$dir/new\" && mv \"$dir/new\" \"$dir/page\"\n";

/// Writes the program for the variable `BROWSER`.
#[must_use]
pub fn browser(home: &Home) -> PathBuf {
    let path = home.write("browser.sh", SCRIPT);
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("an executable file");
    path
}

/// Returns the page that airlock opened in the browser.
#[must_use]
pub fn opened(home: &Path) -> String {
    let page = home.join("page");
    wait_until(|| page.exists());
    std::fs::read_to_string(page).expect("the page that leads to the link")
}

/// Allows the only open question once.
pub fn allow_once(home: &Path) {
    answer(home, &json!({"answer": "allow-once"}));
}

/// Gives an answer to the only open question.
pub fn answer(home: &Path, said: &Value) {
    let page = opened(home).replace("&amp;", "&");
    let link = page.split("url=http://").nth(1).expect("a link");
    let link = link.split('"').next().expect("the end of the link");
    let (host, path) = link.split_once('/').expect("a path");
    let entered = request(host, "GET", &format!("/{path}"), &[], "");
    let cookie = entered.header("set-cookie").expect("a cookie");
    let cookie = cookie.split(';').next().expect("a cookie");
    let place = entered.header("location").expect("the page");
    let key = place.trim_start_matches("/#");
    let origin = format!("http://{host}");
    let headers = [
        ("Cookie", cookie),
        ("X-Airlock-Key", key),
        ("Origin", &origin),
    ];
    // airlock looks for the questions of suspended runs while the page is open.
    let open = || {
        let shown = request(host, "GET", "/questions", &headers, "").text();
        let shown: Value = serde_json::from_str(&shown).expect("the questions");
        let questions = shown["questions"].as_array().expect("a list");
        questions.iter().find(|it| it["state"] == "open").cloned()
    };
    wait_until(|| open().is_some());
    let open = open().expect("an open question");
    let mut said = said.clone();
    said["id"] = open["id"].clone();
    said["nonce"] = open["nonce"].clone();
    let answered = request(host, "POST", "/answer", &headers, &said.to_string());
    assert_eq!(answered.status, 200, "{answered:?}");
}
