//! Prompts and resources of servers: there where somebody offers them, under names
//! that say whose they are, and nowhere else.

use serde_json::{Value, json};
use tests::command::{Home, program};
use tests::serving::{Serving, Session};

fn serving(offers: &[&str]) -> Serving {
    let home = Home::new();
    let fixture = program("fixture-server").display().to_string();
    let (one, other) = (format!("one={fixture}"), format!("other={fixture} --newer"));
    let mut args = vec!["--server".to_owned(), one, "--server".to_owned(), other];
    args.extend(
        offers
            .iter()
            .flat_map(|it| ["--offer".to_owned(), (*it).to_owned()]),
    );
    Serving::start_in(home, args)
}

fn ask(host: &Session, method: &str, params: &Value) -> Result<Value, Value> {
    let mut page = host.begin(9, method, params);
    let message = page.next_message().expect("an answer");
    match message.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(message["result"].clone()),
    }
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let name = |it: &Value| it[key].as_str().unwrap_or_default().to_owned();
    list.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn nothing_is_offered_unless_somebody_says_so() {
    let serving = serving(&[]);
    let host = serving.session(&json!({}));
    let prompts = ask(&host, "prompts/list", &json!({})).unwrap();
    assert_eq!(names(&prompts["prompts"], "name"), ["use_tools"]);
    let resources = ask(&host, "resources/list", &json!({})).unwrap();
    assert_eq!(
        names(&resources["resources"], "name"),
        ["tool_descriptions"]
    );
    for uri in ["test://static-text", "airlock://one/test://static-text"] {
        let refused = ask(&host, "resources/read", &json!({"uri": uri})).unwrap_err();
        assert_eq!(refused["code"], -32_002, "{refused}");
    }
    let complete = ask(&host, "completion/complete", &json!({})).unwrap_err();
    assert_eq!(complete["code"], -32_601, "{complete}");
}

#[test]
fn what_is_offered_says_whose_it_is() {
    let serving = serving(&["one", "other.resources"]);
    let host = serving.session(&json!({}));
    let prompts = ask(&host, "prompts/list", &json!({})).unwrap();
    let listed = names(&prompts["prompts"], "name");
    assert!(
        listed.contains(&"one_simple_prompt".to_owned()),
        "{listed:?}"
    );
    assert!(
        !listed.iter().any(|it| it.starts_with("other")),
        "{listed:?}"
    );
    let args = json!({"arg1": "a", "arg2": "b"});
    for name in ["one_prompt_with_arguments", "one.prompt_with_arguments"] {
        let got = ask(
            &host,
            "prompts/get",
            &json!({"name": name, "arguments": args}),
        )
        .unwrap();
        let said = got["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(said.contains("arg1=\"a\""), "{got}");
    }
    for name in [
        "other_simple_prompt",
        "other.simple_prompt",
        "one_nothing",
        "nothing",
        "",
    ] {
        let refused = ask(&host, "prompts/get", &json!({"name": name})).unwrap_err();
        assert!(refused["message"].is_string(), "{name}: {refused}");
    }
    let embedded = json!({"resourceUri": "test://x"});
    let params = json!({"name": "one_prompt_with_embedded_resource", "arguments": embedded});
    let got = ask(&host, "prompts/get", &params).unwrap();
    let uri = &got["messages"][0]["content"]["resource"]["uri"];
    assert_eq!(*uri, "airlock://one/test://x", "{got}");
}

#[test]
fn an_address_says_whose_resource_it_is_and_without_that_only_one_may_mean_it() {
    let serving = serving(&["one", "other.resources"]);
    let host = serving.session(&json!({}));
    let list = ask(&host, "resources/list", &json!({})).unwrap();
    let uris = names(&list["resources"], "uri");
    for uri in [
        "airlock://one/test://static-text",
        "airlock://other/test://static-text",
    ] {
        assert!(uris.contains(&uri.to_owned()), "{uris:?}");
        let read = ask(&host, "resources/read", &json!({"uri": uri})).unwrap();
        let contents = &read["contents"][0];
        assert_eq!(
            (&contents["uri"], &contents["text"]),
            (&json!(uri), &json!("static text"))
        );
    }
    let templates = ask(&host, "resources/templates/list", &json!({})).unwrap();
    let templates = names(&templates["resourceTemplates"], "uriTemplate");
    let template = "airlock://one/test://template/{id}/data";
    assert!(templates.contains(&template.to_owned()), "{templates:?}");
    let uri = template.replace("{id}", "7");
    let read = ask(&host, "resources/read", &json!({"uri": uri})).unwrap();
    assert!(read.to_string().contains("Data for ID: 7"), "{read}");
    for uri in [
        // Both list it.
        "test://static-text",
        "airlock://one/test://nothing",
        "airlock://nobody/test://static-text",
        "airlock://one",
        "file:///etc/passwd",
        "",
    ] {
        let refused = ask(&host, "resources/read", &json!({"uri": uri})).unwrap_err();
        assert_eq!(refused["code"], -32_002, "{uri}: {refused}");
    }
    // Our own are read as ever.
    let uri = "resource:///tool_descriptions?tools=one.simple_text";
    assert!(ask(&host, "resources/read", &json!({"uri": uri})).is_ok());
}

#[test]
fn the_servers_own_address_is_enough_where_one_is_offered() {
    let serving = serving(&["one"]);
    let host = serving.session(&json!({}));
    let uri = "test://static-binary";
    let read = ask(&host, "resources/read", &json!({"uri": uri})).unwrap();
    assert_eq!(read["contents"][0]["uri"], uri, "{read}");
    assert!(read["contents"][0]["blob"].is_string(), "{read}");
}

#[test]
fn arguments_are_completed_by_whose_they_are() {
    let serving = serving(&["one"]);
    let host = serving.session(&json!({}));
    let argument = json!({"name": "arg1", "value": "par"});
    for (reference, expected) in [
        (
            json!({"type": "ref/prompt", "name": "one_prompt_with_arguments"}),
            3,
        ),
        (
            json!({"type": "ref/resource", "uri": "airlock://one/test://template/{id}/data"}),
            3,
        ),
        (json!({"type": "ref/prompt", "name": "use_tools"}), 0),
    ] {
        let params = json!({"ref": reference, "argument": argument});
        let said = ask(&host, "completion/complete", &params).unwrap();
        let values = said["completion"]["values"].as_array().unwrap();
        assert_eq!(values.len(), expected, "{said}");
    }
    for params in [
        json!({}),
        json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": argument}),
        json!({"ref": {"type": "ref/prompt", "name": "one_simple_prompt"}, "argument": {}}),
        json!({"ref": {"type": "ref/tool"}, "argument": argument}),
    ] {
        let refused = ask(&host, "completion/complete", &params).unwrap_err();
        assert_eq!(refused["code"], -32_602, "{params}: {refused}");
    }
}

#[test]
fn what_a_session_has_read_counts_in_its_runs() {
    let home = Home::new();
    let labels = home.write("labels.toml", "[labels.one]\nreads = [\"private:notes\"]\n");
    let fixture = program("fixture-server").display().to_string();
    let (one, labels) = (format!("one={fixture}"), labels.display().to_string());
    let args = ["--server", &one, "--offer", "one", "--labels", &labels];
    let serving = Serving::start_in(home, args);
    let host = serving.session(&json!({}));
    let carried = |host: &Session| {
        let run = host.run(1, "return 1");
        run["structuredContent"]["flow"]["labels"].to_string()
    };
    assert!(!carried(&host).contains("private:notes"));
    ask(
        &host,
        "resources/read",
        &json!({"uri": "test://static-text"}),
    )
    .unwrap();
    let after = carried(&host);
    assert!(after.contains("private:notes"), "{after}");
}

#[test]
fn credentials_are_struck_from_what_is_read() {
    let home = Home::new();
    let fixture = program("fixture-server").display().to_string();
    let config = format!(
        "[servers.one]\ncommand = \"{fixture}\"\nargs = []\nenv = {{ TOKEN = \"static text\" }}\n"
    );
    let config = home.write("airlock.toml", config).display().to_string();
    let serving = Serving::start_in(home, ["--config", &config, "--offer", "one.resources"]);
    let host = serving.session(&json!({}));
    let read = ask(
        &host,
        "resources/read",
        &json!({"uri": "test://static-text"}),
    )
    .unwrap();
    assert_eq!(read["contents"][0]["text"], "***", "{read}");
}

#[test]
fn an_offer_that_cannot_be_is_wrong_usage() {
    for (offer, said) in [
        ("demp", "did you mean `demo`"),
        ("demo.tools", "SERVER.prompts"),
        ("", "--offer"),
    ] {
        let home = Home::new();
        let ended = home
            .run(["serve", "--demo", "--offer", offer])
            .expect_code(2);
        assert!(ended.stderr.contains(said), "{ended}");
    }
}
