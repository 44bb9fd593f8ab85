//! Tests `server-everything`, which returns every kind of content.

use std::process::Command;

use serde_json::{Value, json};
use tests::command::Home;
use tests::real_servers::installed;

use crate::{LEGACY, MODERN, listen, run, stdio, value, with};

const EVERYTHING: &str = r#"
const text = await ev.echo({ message: "hällo\n\u{1f600}" });
const sum = await ev.get_sum({ a: 2, b: 40 });
const weather = await ev.get_structured_content({ location: "Chicago" });
const image = await ev.get_tiny_image({});
const noted = await ev.get_annotated_message({ messageType: "error", includeImage: false });
const links = await ev.get_resource_links({ count: 2 });
const resource = await ev.get_resource_reference({ resourceType: "Text", resourceId: 7 });
const long = await ev.trigger_long_running_operation({ duration: 0.2, steps: 2 });
let refused;
try {
  await ev.echo(structuredClone({ massage: "x" }));
} catch (e) {
  refused = [e.code, e.message.includes("message")];
}
return { text, sum, weather, image, noted, links, resource, long, refused };
"#;

/// Checks the answers of `server-everything`, over any transport.
fn is_everything(value: &Value) {
    assert_eq!(value["text"], "Echo: hällo\n\u{1f600}");
    assert_eq!(value["sum"], "The sum of 2 and 40 is 42.");
    assert_eq!(
        value["weather"],
        json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82})
    );
    let image = value["image"].as_array().unwrap();
    assert_eq!(
        (&image[0]["type"], &image[1]["type"], &image[1]["mimeType"]),
        (&json!("text"), &json!("image"), &json!("image/png"))
    );
    assert!(
        image[1]["data"]
            .as_str()
            .unwrap()
            .starts_with("iVBORw0KGgo"),
        "the unchanged base64 of a PNG"
    );
    assert!(
        value["noted"] == "Error: Operation failed"
            || value["noted"][0]["text"] == "Error: Operation failed",
        "{}",
        value["noted"]
    );
    let links = value["links"].as_array().unwrap();
    assert_eq!(links.len(), 3);
    assert_eq!(
        (&links[1]["type"], &links[1]["uri"]),
        (
            &json!("resource_link"),
            &json!("demo://resource/dynamic/blob/1")
        )
    );
    let resource = &value["resource"][1];
    assert_eq!(
        (&resource["type"], &resource["resource"]["uri"]),
        (&json!("resource"), &json!("demo://resource/dynamic/text/7"))
    );
    assert!(
        resource["resource"]["text"]
            .as_str()
            .unwrap()
            .starts_with("Resource 7: ")
    );
    assert!(
        value["long"]
            .as_str()
            .unwrap()
            .starts_with("Long running operation completed.")
    );
    assert_eq!(value["refused"], json!(["invalid-arguments", true]));
}

#[test]
fn everything_over_stdio() {
    let Some(servers) = installed() else { return };
    let everything = stdio(&servers.npm("server-everything"), &["stdio"]);
    for era in ["auto", LEGACY] {
        let home = Home::new();
        is_everything(&value(
            &home,
            &json!({"ev": with(everything.clone(), "era", era)}),
            EVERYTHING,
        ));
    }
}

#[test]
fn everything_over_streamable_http() {
    let Some(servers) = installed() else { return };
    let command = servers.npm("server-everything");
    let server = listen(|port| {
        let mut node = Command::new(&command[0]);
        node.args(&command[1..])
            .arg("streamableHttp")
            .env("PORT", port.to_string());
        node
    });
    for era in ["auto", LEGACY] {
        let home = Home::new();
        is_everything(&value(
            &home,
            &json!({"ev": {"url": server.url, "era": era}}),
            EVERYTHING,
        ));
    }
}

#[test]
fn unsupported_pinned_era_is_a_problem() {
    let Some(servers) = installed() else { return };
    let everything = with(
        stdio(&servers.npm("server-everything"), &["stdio"]),
        "era",
        MODERN,
    );
    let ended = run(&Home::new(), &json!({"ev": everything}), "return 1").expect_code(30);
    assert!(
        ended.stderr.contains("ev") && ended.stderr.contains("error:"),
        "{ended}"
    );
}
