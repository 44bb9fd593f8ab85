//! Reads how a server describes its groups and tags: `groups/list` and `tags/list` (SEP-1300). A
//! server declares these lists as the capability `filtering`.

use std::collections::BTreeMap;
use std::time::Duration;

use airlock_core::json::{self, Bounds};
use codegen::text::{clip, neutralise};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::connection::Connection;
use super::fetch::Fetch;
use super::jsonrpc::{Answer, METHOD_NOT_FOUND};
use crate::deadline::Deadline;

/// Maximum number of groups, and of tags.
const ENTRIES_MAX: usize = 500;
const BOUNDS: Bounds = Bounds {
    bytes_max: 512 * 1024,
    depth_max: 16,
    nodes_max: 20_000,
};
/// The names of groups and tags of tools have the same limit.
const NAME_BYTES_MAX: usize = 100;
const TITLE_BYTES_MAX: usize = 200;
const DESCRIPTION_BYTES_MAX: usize = 1_000;

/// The groups and tags that a server describes, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupsAndTags {
    #[serde(default)]
    pub groups: BTreeMap<String, NameDescription>,
    #[serde(default)]
    pub tags: BTreeMap<String, NameDescription>,
}

/// What a server says about one group or tag. Only groups have a title.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameDescription {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl GroupsAndTags {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.tags.is_empty()
    }

    /// Prepares the texts for hosts: masks credentials with `mask`, makes invisible characters
    /// visible, and cuts long texts. The cut comes last, because it could leave half of a credential.
    pub(crate) fn sanitize(&mut self, mask: impl Fn(&mut String)) {
        let sanitized = |mut text: String, bytes_max: usize| {
            mask(&mut text);
            let text = neutralise(&text);
            let text = text.trim();
            (!text.is_empty()).then(|| clip(text, bytes_max))
        };
        for list in [&mut self.groups, &mut self.tags] {
            let entries = std::mem::take(list).into_iter();
            *list = entries
                .filter_map(|(name, about)| {
                    let text = |text: Option<String>, max| sanitized(text?, max);
                    let about = NameDescription {
                        title: text(about.title, TITLE_BYTES_MAX),
                        description: text(about.description, DESCRIPTION_BYTES_MAX),
                    };
                    Some((sanitized(name, NAME_BYTES_MAX)?, about))
                })
                .collect();
        }
    }
}

/// Reads both lists, if the server has them, and reports why a list could not be read.
pub(super) async fn read(
    connection: &Connection,
    within: Duration,
) -> (GroupsAndTags, Vec<(&'static str, String)>) {
    if !connection.negotiated.has.filtering {
        return Default::default();
    }
    let deadline = Deadline::new(within);
    let (groups, tags) = tokio::join!(
        entries(connection, "groups/list", "groups", &deadline),
        entries(connection, "tags/list", "tags", &deadline),
    );
    let mut problems = Vec::new();
    let mut or_report = |method, read: Result<_, String>| {
        read.unwrap_or_else(|why| {
            problems.push((method, why));
            BTreeMap::new()
        })
    };
    let read = GroupsAndTags {
        groups: or_report("groups/list", groups),
        tags: or_report("tags/list", tags),
    };
    (read, problems)
}

async fn entries(
    connection: &Connection,
    method: &'static str,
    member: &str,
    deadline: &Deadline,
) -> Result<BTreeMap<String, NameDescription>, String> {
    let fetch = Fetch {
        method,
        params: Map::new(),
        name: None,
        bytes_max: BOUNDS.bytes_max as usize,
    };
    let answer = connection.fetch(&fetch, deadline).await;
    let result = match answer.map_err(|error| error.why())? {
        Answer::Result(result) => result,
        // The server has only the other list.
        Answer::Error(error) if error.code == METHOD_NOT_FOUND => return Ok(BTreeMap::new()),
        Answer::Error(error) => {
            let (code, message) = (error.code, error.message);
            return Err(format!("the server answered with error {code}: {message}"));
        }
        Answer::Unreadable(why) => return Err(why),
    };
    let result = json::read(result.get().as_bytes(), BOUNDS).map_err(|bad| bad.to_string())?;
    let listed = result.get(member).and_then(Value::as_array);
    let listed = listed.ok_or_else(|| format!("`{member}` is missing or not a list"))?;
    let mut found = BTreeMap::new();
    for (name, about) in listed.iter().filter_map(entry) {
        if found.len() >= ENTRIES_MAX {
            break;
        }
        found.entry(name).or_insert(about);
    }
    Ok(found)
}

/// Reads one entry as the server sent it. An entry without a name is skipped.
fn entry(value: &Value) -> Option<(String, NameDescription)> {
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let about = NameDescription {
        title: text("title"),
        description: text("description"),
    };
    Some((text("name")?, about))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entry_without_a_name_is_skipped() {
        assert_eq!(entry(&json!("user")), None);
        assert_eq!(entry(&json!({"name": 7, "title": "x"})), None);
        let (name, about) = entry(&json!({"name": "user", "title": 7})).unwrap();
        assert_eq!((name, about), ("user".into(), NameDescription::default()));
    }

    #[test]
    fn texts_are_masked_and_then_cut() {
        let about = |title: &str, description: &str| NameDescription {
            title: Some(title.to_owned()),
            description: Some(description.to_owned()),
        };
        let secret = "x".repeat(TITLE_BYTES_MAX) + "token";
        let mut read = GroupsAndTags {
            groups: BTreeMap::from([("a token\u{200b}".into(), about(&secret, " "))]),
            tags: BTreeMap::from([(" ".into(), NameDescription::default())]),
        };
        read.sanitize(|text| *text = text.replace("xtoken", "***").replace("token", "***"));
        assert_eq!(read.tags, BTreeMap::new());
        let (name, about) = read.groups.pop_first().unwrap();
        assert!(
            name.starts_with("a ***") && !name.contains('\u{200b}'),
            "{name}"
        );
        assert!(!about.title.unwrap().contains("tok"));
        assert_eq!(about.description, None);
    }
}
