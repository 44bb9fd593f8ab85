//! Scripts that find tools and read about them by themselves, without a round trip.

use super::*;

fn value(result: &Value) -> &Value {
    &result["structuredContent"]["value"]
}

#[tokio::test]
async fn a_script_finds_reads_about_and_calls_a_tool_in_one_run() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let result = host
            .run(
                "const found = await airlock.search({query: 'gives arguments back', limit: 1});
                 const {name} = found.tools[0];
                 const text = await airlock.describe({tools: [name]});
                 return {name, text, said: await word.echo({text: 'x'})}",
            )
            .await;
        let told = value(&result);
        assert_eq!(told["name"], "word.echo", "{way}: {result}");
        assert_eq!(told["said"], json!({"text": "x"}));
        let text = told["text"].as_str().unwrap();
        assert!(text.contains("echo(") && !text.contains("upper"), "{text}");
        // What a script has read about can be called in the session from then on.
        let later = host.run("return await word.echo({text: 'y'})").await;
        assert_eq!(value(&later), &json!({"text": "y"}), "{way}: {later}");
    }
}

#[tokio::test]
async fn names_that_a_script_describes_itself_are_not_asked_for_before_it_runs() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let both = "await airlock.describe({tools: ['word.echo']});
                    await word.echo({text: 'x'}); await word.to_upper({text: 'x'})";
        let refused = host.run(both).await;
        let error = &refused["structuredContent"]["error"];
        assert_eq!(error["code"], "TOOL_DESCRIPTION_REQUIRED", "{way}");
        assert!(error["message"].as_str().unwrap().contains("word.to-upper"));
        assert!(!error.to_string().contains("echo"), "{error}");
        let late = "try { await word.echo({text: 'x'}) } catch (e) {
                        await airlock.describe({tools: ['word.echo']});
                        return [e.code, e.message, await word.echo({text: 'x'})] }";
        let result = host.run(late).await;
        let told = value(&result);
        assert_eq!(told[0], "not-disclosed", "{way}: {result}");
        assert!(
            told[1]
                .as_str()
                .unwrap()
                .contains("TOOL_DESCRIPTION_REQUIRED")
        );
        assert_eq!(told[2], json!({"text": "x"}));
    }
}

#[tokio::test]
async fn what_is_told_is_what_hosts_are_told_and_nothing_of_what_may_never_be_called() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let result = host
            .run(
                "const all = await airlock.search({});
                 const full = await airlock.describe({tools: 'word.echo', format: 'json'});
                 return {all, full}",
            )
            .await;
        let told = value(&result);
        let searched = host.call("search_tools", json!({})).await;
        assert_eq!(told["all"], searched["structuredContent"], "{way}");
        let args = json!({"tools": ["word.echo"], "format": "json"});
        let details = host.call("get_tool_details", args).await;
        let mut details: Value = serde_json::from_str(text(&details)).unwrap();
        details.as_object_mut().unwrap().remove("session");
        assert_eq!(told["full"], details, "{way}");
        assert!(!result.to_string().contains("secret"), "{result}");
        let listed = host.request("tools/list", json!({})).await.unwrap();
        assert!(listed.to_string().contains("airlock.search(query)"));
    }
}

#[tokio::test]
async fn a_question_that_makes_no_sense_is_an_error_that_a_script_can_read() {
    let mut host = Host::connect(LEGACY, settings()).await;
    for (question, code, word) in [
        (
            "airlock.search({query: 'x', servers: ['nowhere']})",
            "tool-failed",
            "nowhere",
        ),
        (
            "airlock.search({query: '(', mode: 'regex'})",
            "tool-failed",
            "pattern",
        ),
        (
            "airlock.describe({tools: 'word.ekko'})",
            "tool-failed",
            "word.echo",
        ),
        (
            "airlock.describe({tools: []})",
            "tool-failed",
            "name the tools",
        ),
        (
            "airlock.search(JSON.parse('{\"limit\": 0}'))",
            "invalid-arguments",
            "limit",
        ),
        (
            "airlock.search(JSON.parse('{\"limits\": 1}'))",
            "invalid-arguments",
            "`limit`",
        ),
    ] {
        let result = host
            .run(&format!(
                "try {{ return await {question} }} catch (e) {{ return [e.code, e.message] }}"
            ))
            .await;
        let told = value(&result);
        assert_eq!(told[0], code, "{question}: {result}");
        assert!(
            told[1].as_str().unwrap().contains(word),
            "{question}: {told}"
        );
    }
}

#[tokio::test]
async fn reading_in_scripts_counts_as_reading() {
    let rate = airlock_core::session::FetchRate {
        burst: 2,
        per_minute: 1,
    };
    let settings = Settings {
        fetch_rate: rate,
        ..settings()
    };
    let mut host = Host::connect(LEGACY, settings).await;
    let result = host
        .run(
            "const read = () => airlock.describe({tools: 'word.echo'});
             await read(); await read();
             try { await read() } catch (e) { return e.message }",
        )
        .await;
    assert!(
        value(&result).as_str().unwrap().contains("too often"),
        "{result}"
    );
}
