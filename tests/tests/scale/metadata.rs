//! Tests that a model sees the additions of tool files where it chooses tools.

use serde_json::json;
use tests::stdio_host::text;

use crate::fixtures::{Site, tool};

#[test]
fn search_shows_deprecation_and_details_show_the_rest() {
    let mut site = Site::new();
    let tools = [tool("count", "Counts."), tool("tally", "Counts words.")];
    site.server("word", &tools, "");
    let file = json!({
        "name": "count",
        "version": "1.2.0",
        "category": "text",
        "rate_limit": {"calls": 10, "per": "minute"},
        "related_tools": ["tally"],
        "deprecation": {"replacement": "tally", "removal": "3.0"},
    });
    site.home.write("said/word/count.json", file.to_string());
    let flags = ["--descriptions", "said", "--disclosure", "progressive"];
    let mut host = site.host(&flags);
    let found = host.call("search_tools", &json!({"query": "counts"}));
    assert!(text(&found).contains("[deprecated"), "{found}");
    let entries = found["structuredContent"]["tools"].as_array().unwrap();
    let named = |name: &str| entries.iter().find(|it| it["name"] == name).unwrap();
    let old = named("word.count");
    assert_eq!(old["category"], "text");
    assert_eq!(old["version"], "1.2.0");
    assert_eq!(old["replacement"], "tally");
    assert!(old["deprecated"].is_string(), "{old}");
    assert!(named("word.tally").get("deprecated").is_none());
    let args = json!({"tools": ["word.count"], "format": "json"});
    let details = host.call("get_tool_details", &args);
    for said in ["\"per\":\"minute\"", "1.2.0", "tally", "3.0"] {
        assert!(text(&details).contains(said), "{said} in {details}");
    }
}
