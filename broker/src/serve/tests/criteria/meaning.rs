//! What clients are advised to search by besides words: what a text means, where a model
//! knows that, and both joined.

use super::super::host::{House, tool};
use super::super::*;
use super::shown;
use crate::broker::Broker;
use crate::embeddings_file;
use crate::scratch::Scratch;

shown! {
    a_model_finds_tools_by_what_their_texts_mean: ["bp-embeddings"];
    what_words_and_meaning_both_find_comes_first: ["bp-hybrid"];
}

/// Names of what is found, best first. `peruses` means what `reads` means, to the model.
async fn found(way: Way, has_model: bool, query: &str) -> Vec<String> {
    let echo = async |args: Value| Ok(args);
    let model = Scratch::new();
    embeddings_file::tests::tiny(model.path());
    let mut builder = Broker::builder()
        .tool(tool("desk", "archive", "Puts away the letters", echo))
        .tool(tool("desk", "open", "Reads", echo))
        .tool(tool("desk", "seek", "Reads letters of the archive", echo))
        .tool(tool("desk", "shred", "Deletes", echo));
    if has_model {
        builder = builder.embeddings(model.path());
    }
    let house = House::built(builder, settings()).await;
    let mut host = house.host(way, json!({})).await;
    let found = host.call("search_tools", json!({"query": query})).await;
    let tools = found["structuredContent"]["tools"].as_array().unwrap();
    let names = tools.iter().filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

async fn a_model_finds_tools_by_what_their_texts_mean(way: Way) {
    assert_eq!(found(way, false, "peruses").await, Vec::<String>::new());
    let found = found(way, true, "peruses").await;
    assert_eq!(found[..2], ["desk.open", "desk.seek"], "{found:?}");
}

async fn what_words_and_meaning_both_find_comes_first(way: Way) {
    // Words alone prefer the tool that has the word as its name, and do not know the other one.
    let by_words = found(way, false, "peruses the archive").await;
    assert_eq!(by_words, ["desk.archive", "desk.seek"]);
    let joined = found(way, true, "peruses the archive").await;
    assert_eq!(joined[0], "desk.seek", "{joined:?}");
    let both = ["desk.archive", "desk.open"].map(|name| joined.iter().any(|it| it == name));
    assert_eq!(both, [true, true], "{joined:?}");
}
