//! Twelve servers and more than a thousand tools behind one.

use serde_json::json;
use tests::stdio_host::text;

use crate::fixtures::{Site, twelve};

#[test]
fn the_list_of_a_thousand_tools_is_a_few_lines_and_search_finds_each() {
    let fixtures = twelve();
    let mut site = Site::new();
    for it in &fixtures {
        site.server(&it.name.replace('_', "-"), &it.tools, "");
    }
    // All of them, however slow the machine is.
    let mut host = site.host(&["--start-wait", "60s"]);
    let list = host.request("tools/list", &json!({}));
    let bytes = list.to_string().len();
    assert!(bytes < 4_096, "{bytes} bytes");
    let listed: usize = fixtures.iter().map(|it| it.tools.len()).sum();
    let found = host.call("search_tools", &json!({"detail": "names", "limit": 50}));
    let total = found["structuredContent"]["total"].as_u64().unwrap();
    assert!(total >= 1_000 && total <= listed as u64, "{total}");
    for fixture in &fixtures {
        let server = fixture.name.replace('_', "-");
        let tool = fixture.tools[0]["name"].as_str().unwrap();
        let args = json!({"query": tool, "servers": [server], "detail": "names"});
        let found = host.call("search_tools", &args);
        assert!(text(&found).contains(tool), "{server}.{tool}: {found}");
    }
}
