//! Tests prompts and resources of servers. Hosts get them only if the configuration offers them,
//! under names that contain the server's name.

use serde_json::{Value, json};
use tests::command::{Home, program};
use tests::serving::{ServeProcess, Session};

fn serving(offers: &[&str]) -> ServeProcess {
    let home = Home::new();
    let fixture = program("fixture-server").display().to_string();
    let (one, other) = (format!("one={fixture}"), format!("other={fixture} --newer"));
    let mut args = vec!["--server".to_owned(), one, "--server".to_owned(), other];
    args.extend(
        offers
            .iter()
            .flat_map(|it| ["--offer".to_owned(), (*it).to_owned()]),
    );
    ServeProcess::start_in(home, args)
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
fn nothing_is_offered_by_default() {
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
fn offered_items_name_their_server() {
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
fn resource_address_names_server_or_must_be_unique() {
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
        // Both servers list this resource.
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
    // airlock's own resources are read as usual.
    let uri = "resource:///tool_descriptions?tools=one.simple_text";
    assert!(ask(&host, "resources/read", &json!({"uri": uri})).is_ok());
}

#[test]
fn plain_address_works_with_single_offer() {
    let serving = serving(&["one"]);
    let host = serving.session(&json!({}));
    let uri = "test://static-binary";
    let read = ask(&host, "resources/read", &json!({"uri": uri})).unwrap();
    assert_eq!(read["contents"][0]["uri"], uri, "{read}");
    assert!(read["contents"][0]["blob"].is_string(), "{read}");
}

#[test]
fn completion_goes_to_owning_server() {
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
fn session_reads_count_in_its_runs() {
    let home = Home::new();
    let labels = home.write("labels.toml", "[labels.one]\nreads = [\"private:notes\"]\n");
    let fixture = program("fixture-server").display().to_string();
    let (one, labels) = (format!("one={fixture}"), labels.display().to_string());
    let args = ["--server", &one, "--offer", "one", "--labels", &labels];
    let serving = ServeProcess::start_in(home, args);
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
fn read_content_is_redacted() {
    let home = Home::new();
    let fixture = program("fixture-server").display().to_string();
    let config = format!(
        "[servers.one]\ncommand = \"{fixture}\"\nargs = []\nenv = {{ TOKEN = \"static text\" }}\n"
    );
    let config = home.write("airlock.toml", config).display().to_string();
    let serving = ServeProcess::start_in(home, ["--config", &config, "--offer", "one.resources"]);
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
fn impossible_offer_is_a_usage_error() {
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
