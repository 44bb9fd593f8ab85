//! Tests several third-party servers in one script.

use serde_json::json;
use tests::command::Home;
use tests::real_servers::installed;

use crate::git::repository;
use crate::sqlite::sqlite;
use crate::{run, stdio};

#[test]
fn one_script_uses_four_servers() {
    let Some(servers) = installed() else { return };
    let home = Home::new();
    let repo = repository(&home);
    home.write("files/todo.txt", "call Tokyo\n");
    let files = home.path().join("files").canonicalize().unwrap();
    let table = json!({
        "fs": stdio(&servers.npm("server-filesystem"), &[files.to_str().unwrap()]),
        "git": stdio(&servers.python("mcp-server-git"), &["--repository", &repo]),
        "time": stdio(&servers.python("mcp-server-time"), &["--local-timezone", "UTC"]),
        "db": sqlite(servers, &home),
    });
    let code = format!(
        r#"
const [todo, log, tokyo] = await Promise.all([
  fs.read_text_file({{ path: {} }}),
  git.git_log({{ repo_path: {}, max_count: 1 }}),
  time.convert_time({{ source_timezone: "UTC", time: "00:00", target_timezone: "Asia/Tokyo" }}),
  db.create_table({{ query: "create table done (what text)" }}),
]);
const what = `${{todo.content.trim()}} at ${{tokyo.target.datetime.slice(11, 16)}}`;
await db.write_query({{ query: `insert into done values ('${{what}}')` }});
return {{ rows: await db.read_query({{ query: "select * from done" }}), first: log.includes("first notes") }};
"#,
        json!(files.join("todo.txt")),
        json!(repo)
    );
    let report = run(&home, &table, &code).expect_code(0).json();
    assert_eq!(
        report["value"],
        json!({"rows": "[{'what': 'call Tokyo at 09:00'}]", "first": true})
    );
    let calls = report["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 6);
    assert!(
        calls.iter().all(|call| call["outcome"] == "returned"),
        "{report:#}"
    );
    home.verify_all();
}
