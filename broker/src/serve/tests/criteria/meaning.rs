//! Tests of search by meaning, if a model is available, and by words and meaning together.

use super::super::host::{TestServer, tool};
use super::super::*;
use super::shown;
use crate::broker::Broker;
use crate::embeddings_file;
use crate::tempdir::TempDir;

shown! {
    a_model_finds_tools_by_what_their_texts_mean: ["bp-embeddings"];
    what_words_and_meaning_both_find_comes_first: ["bp-hybrid"];
}

/// Returns the names of the tools found, best first. To the model, `peruses` means the same as
/// `reads`.
async fn found(way: HostKind, has_model: bool, query: &str) -> Vec<String> {
    let echo = async |args: Value| Ok(args);
    let model = TempDir::new();
    embeddings_file::tests::tiny(model.path());
    let mut builder = Broker::builder()
        .tool(tool("desk", "archive", "Puts away the letters", echo))
        .tool(tool("desk", "open", "Reads", echo))
        .tool(tool("desk", "seek", "Reads letters of the archive", echo))
        .tool(tool("desk", "shred", "Deletes", echo));
    if has_model {
        builder = builder.embeddings(model.path());
    }
    let server = TestServer::built(builder, settings()).await;
    let mut host = server.host(way, json!({})).await;
    let found = host.call("search_tools", json!({"query": query})).await;
    let tools = found["structuredContent"]["tools"].as_array().unwrap();
    let names = tools.iter().filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

async fn a_model_finds_tools_by_what_their_texts_mean(way: HostKind) {
    assert_eq!(found(way, false, "peruses").await, Vec::<String>::new());
    let found = found(way, true, "peruses").await;
    assert_eq!(found[..2], ["desk.open", "desk.seek"], "{found:?}");
}

async fn what_words_and_meaning_both_find_comes_first(way: HostKind) {
    // Search by words finds the tool whose name contains the word. It does not find the tool with a
    // similar meaning.
    let by_words = found(way, false, "peruses the archive").await;
    assert_eq!(by_words, ["desk.archive", "desk.seek"]);
    let joined = found(way, true, "peruses the archive").await;
    assert_eq!(joined[0], "desk.seek", "{joined:?}");
    let both = ["desk.archive", "desk.open"].map(|name| joined.iter().any(|it| it == name));
    assert_eq!(both, [true, true], "{joined:?}");
}
