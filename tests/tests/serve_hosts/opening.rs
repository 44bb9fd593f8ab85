//! Tests a server that refuses a call until an address was opened. The host's user opens the
//! address, and the call is repeated. Covers both eras of hosts and servers.

use serde_json::{Value, json};
use tests::command::Home;

use super::passing::{modern, serving};
use super::{noted, running, text};

const FIRST: &str = "return await test.address_first({})";
const FIRST_URL: &str = "https://example.com/first";

/// Checks that the call was sent twice, and that the journal records the reason.
fn was_made_again(home: &Home, result: &Value) {
    let value = &result["structuredContent"]["value"];
    assert_eq!(*value, "this is address_first", "{result}");
    let noted = noted(home);
    assert_eq!(noted.matches("call address_first").count(), 2, "{noted}");
    home.verify_all();
    let read = |it: &std::path::PathBuf| std::fs::read_to_string(it).unwrap();
    let journals: String = home.journals().iter().map(read).collect();
    assert!(journals.contains(r#""again":true"#), "{journals}");
    assert!(!journals.contains(FIRST_URL), "{journals}");
}

#[test]
fn call_is_repeated_after_url_was_opened() {
    let can = json!({"elicitation": {"url": {}}});
    for era in ["", " --newer"] {
        let serving = serving(era);
        let host = serving.session(&can);
        let mut run = host.begin(1, "tools/call", &running(FIRST));
        let asked = run.told("elicitation/create");
        assert_eq!(asked["params"]["url"], FIRST_URL, "{asked}");
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(message.contains("`test` behind airlock"), "{message}");
        let accept = || host.reply(&asked["id"], &json!({"action": "accept"}));
        // Only a server of the older era reports that the address was opened.
        if era.is_empty() {
            accept();
        }
        let opened = host.run(2, "return await test.opened({})");
        assert!(text(&opened).contains("this is opened"), "{opened}");
        if !era.is_empty() {
            accept();
        }
        was_made_again(&serving.home, &run.answer(1));
    }
}

#[test]
fn newer_era_host_opens_required_url() {
    let can = json!({"elicitation": {"url": {}}});
    for era in ["", " --newer"] {
        let serving = serving(era);
        let mut params = json!({"name": "run_script", "arguments": {"code": FIRST}});
        let first = modern(&serving, params.clone(), &can).answer(1);
        let requests = first["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().next().unwrap();
        assert_eq!(request["params"]["url"], FIRST_URL, "{request}");
        let opened = json!({"code": "return await test.opened({})"});
        let opened = json!({"name": "run_script", "arguments": opened});
        let opened = modern(&serving, opened, &can).answer(1);
        assert!(text(&opened).contains("this is opened"), "{opened}");
        params["requestState"] = first["requestState"].clone();
        params["inputResponses"] = json!({ key: {"action": "accept"} });
        was_made_again(&serving.home, &modern(&serving, params, &can).answer(1));
    }
}

#[test]
fn unopened_url_ends_call_with_error() {
    let code = "try { return await test.address_first({}) }
        catch (e) { return [e.code, e.message] }";
    let url = json!({"elicitation": {"url": {}}});
    let form = json!({"elicitation": {}});
    for (era, can, said, expected, left) in [
        ("", &url, "decline", ["refused", "the person declined"], 1),
        ("", &url, "cancel", ["unanswered", "did not open it"], 1),
        (
            " --newer",
            &url,
            "decline",
            ["refused", "nothing was done"],
            1,
        ),
        // The address is opened, and the server still refuses.
        (
            " --newer",
            &url,
            "accept",
            ["tool-failed", "still requires it"],
            2,
        ),
        (
            "",
            &form,
            "",
            ["tool-failed", "cannot ask a person to open it"],
            1,
        ),
        (" --newer", &form, "", ["tool-failed", FIRST_URL], 1),
    ] {
        let serving = serving(era);
        let host = serving.session(can);
        let mut run = host.begin(1, "tools/call", &running(code));
        if !said.is_empty() {
            let asked = run.told("elicitation/create");
            host.reply(&asked["id"], &json!({"action": said}));
        }
        let result = run.answer(1);
        let value = result["structuredContent"]["value"].to_string();
        for part in expected {
            assert!(value.contains(part), "{era} {said}: {part} in {value}");
        }
        let noted = noted(&serving.home);
        assert_eq!(noted.matches("call address_first").count(), left, "{noted}");
    }
}
