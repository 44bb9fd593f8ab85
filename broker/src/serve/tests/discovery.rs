//! Scripts that search tools and read about them, without a round trip to the host.

use super::*;

fn value(result: &Value) -> &Value {
    &result["structuredContent"]["value"]
}

#[tokio::test]
async fn script_searches_describes_and_calls_in_one_run() {
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
        // The session may call the tools that its script has read about.
        let later = host.run("return await word.echo({text: 'y'})").await;
        assert_eq!(value(&later), &json!({"text": "y"}), "{way}: {later}");
    }
}

#[tokio::test]
async fn names_described_by_script_need_no_prior_disclosure() {
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
async fn script_discovery_matches_host_discovery_and_hides_denied_tools() {
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
async fn invalid_discovery_request_is_a_readable_error() {
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
            "did you mean `word.echo`?",
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
async fn script_describe_counts_as_disclosure() {
    let rate = airlock_core::session::FetchRate {
        burst: 2,
        per_minute: 1,
    };
    let settings = ServeSettings {
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
        value(&result)
            .as_str()
            .unwrap()
            .contains("too many description fetches"),
        "{result}"
    );
}
