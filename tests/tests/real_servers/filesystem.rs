//! Tests `server-filesystem`: results with a schema, and a refusal by the server.

use serde_json::{Value, json};
use tests::command::Home;
use tests::real_servers::installed;

use crate::{stdio, value};

#[test]
fn filesystem() {
    let Some(servers) = installed() else { return };
    let home = Home::new();
    home.write("files/a.txt", "hello\nworld\n");
    let files = home.path().join("files").canonicalize().unwrap();
    let server = stdio(
        &servers.npm("server-filesystem"),
        &[files.to_str().unwrap()],
    );
    let code = format!(
        r#"
const dir = {};
const read = await fs.read_text_file({{ path: dir + "/a.txt" }});
const head = await fs.read_text_file({{ path: dir + "/a.txt", head: 1 }});
const wrote = await fs.write_file({{ path: dir + "/b.txt", content: "ünï\u0000\n" }});
const listed = await fs.list_directory({{ path: dir }});
const tree = await fs.directory_tree({{ path: dir }});
const info = await fs.get_file_info({{ path: dir + "/b.txt" }});
const outside = await fs.read_text_file({{ path: "/etc/passwd" }}).catch((e) => [e.code, e.content[0].text]);
return {{ read, head, wrote, listed, tree, info, outside }};
"#,
        json!(files)
    );
    let value = value(&home, &json!({"fs": server}), &code);
    assert_eq!(value["read"], json!({"content": "hello\nworld\n"}));
    assert_eq!(value["head"], json!({"content": "hello"}));
    assert_eq!(
        std::fs::read_to_string(files.join("b.txt")).unwrap(),
        "ünï\0\n",
        "{}",
        value["wrote"]
    );
    assert_eq!(
        value["listed"],
        json!({"content": "[FILE] a.txt\n[FILE] b.txt"})
    );
    let tree: Value = serde_json::from_str(value["tree"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(tree[1]["name"], "b.txt");
    assert!(
        value["info"]["content"]
            .as_str()
            .unwrap()
            .starts_with("size: 7\n"),
        "{}",
        value["info"]
    );
    assert_eq!(value["outside"][0], "tool-failed");
    assert!(
        value["outside"][1]
            .as_str()
            .unwrap()
            .starts_with("Access denied"),
        "{}",
        value["outside"]
    );
}
