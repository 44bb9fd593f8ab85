//! What a file says about labels, roots and known destinations: the same
//! tables in `airlock.toml` and in a file of their own (`--labels`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airlock_core::facts::{OUTSIDE, Writes};
use airlock_core::flow::{Field, Known, Label, Labels, Saying, Sayings};
use airlock_core::problem::Problem;
use codegen::closest::closest;
use serde::Deserialize;
use toml::Spanned;

use super::file::{Located, line_of, unreadable};
use super::{invalid, invalid_at};

/// What all files say together about where data comes from and goes to.
#[derive(Debug, Clone, Default)]
pub struct FlowConfig {
    pub sayings: Sayings,
    /// Folders by their names; the paths of calls are told by the root they lie under.
    pub roots: BTreeMap<String, PathBuf>,
    /// Destinations that need no other explanation.
    pub known: Known,
    /// What the run's input carries.
    pub input_labels: Labels,
}

impl FlowConfig {
    /// Nobody said anything, so nothing is to be watched on its account.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sayings.is_empty()
            && self.roots.is_empty()
            && self.known.is_empty()
            && self.input_labels.is_empty()
    }
}

/// The tables, as part of a document.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tables {
    #[serde(default)]
    pub(super) labels: BTreeMap<String, Spanned<ServerTable>>,
    #[serde(default)]
    pub(super) roots: BTreeMap<String, Spanned<PathBuf>>,
    #[serde(default)]
    pub(super) known_destinations: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) input_reads: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerTable {
    reads: Option<Vec<Spanned<String>>>,
    writes: Option<Vec<Spanned<String>>>,
    destinations: Option<Vec<Spanned<String>>>,
    fixed_destination: Option<bool>,
    paths: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    tools: BTreeMap<String, Spanned<ToolTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolTable {
    reads: Option<Vec<Spanned<String>>>,
    writes: Option<Vec<Spanned<String>>>,
    destinations: Option<Vec<Spanned<String>>>,
    fixed_destination: Option<bool>,
    paths: Option<Vec<Spanned<String>>>,
}

/// What one file says. `name` is how it is called in messages.
#[derive(Debug, Default)]
pub(crate) struct FileFlow {
    sayings: Vec<Saying>,
    roots: Vec<(String, PathBuf, String)>,
    known: Vec<Located>,
    input_labels: Vec<Label>,
}

impl FileFlow {
    /// Roots that are named from the file's own folder on.
    pub(super) fn beside(mut self, folder: &Path) -> Self {
        for (_, path, _) in &mut self.roots {
            *path = folder.join(&path);
        }
        self
    }
}

pub(crate) fn parse(name: &str, text: &str) -> Result<FileFlow, Problem> {
    let tables: Tables =
        toml::from_str(text).map_err(|error| unreadable(name, text, &error, LABELS_HELP))?;
    read(name, text, tables)
}

const LABELS_HELP: &str = "correct the file; docs/configuration.md lists what may stand in it";

pub(super) fn read(name: &str, text: &str, tables: Tables) -> Result<FileFlow, Problem> {
    let file = File { name, text };
    let mut flow = FileFlow::default();
    for (server, table) in tables.labels {
        let origin = file.origin(table.span().start);
        let ServerTable {
            reads,
            writes,
            destinations,
            fixed_destination,
            paths,
            tools,
        } = table.into_inner();
        let own = ToolTable {
            reads,
            writes,
            destinations,
            fixed_destination,
            paths,
        };
        flow.sayings.push(file.saying(&server, None, own, origin)?);
        for (tool, table) in tools {
            let origin = file.origin(table.span().start);
            let saying = file.saying(&server, Some(tool), table.into_inner(), origin)?;
            flow.sayings.push(saying);
        }
    }
    for (root, path) in tables.roots {
        let origin = file.origin(path.span().start);
        flow.roots.push((root, path.into_inner(), origin));
    }
    for known in tables.known_destinations {
        let origin = file.origin(known.span().start);
        let text = known.into_inner();
        flow.known.push(Located { text, origin });
    }
    for label in tables.input_reads {
        flow.input_labels.push(file.label(label)?);
    }
    Ok(flow)
}

struct File<'a> {
    name: &'a str,
    text: &'a str,
}

impl File<'_> {
    fn origin(&self, at: usize) -> String {
        format!("{}:{}", self.name, line_of(self.text, at))
    }

    fn saying(
        &self,
        server: &str,
        tools: Option<String>,
        table: ToolTable,
        origin: String,
    ) -> Result<Saying, Problem> {
        let labels = |words: Vec<Spanned<String>>| {
            let labels: Result<Labels, _> = words.into_iter().map(|it| self.label(it)).collect();
            labels
        };
        let fields = |texts: Vec<Spanned<String>>| {
            let fields: Result<Vec<_>, _> = texts.into_iter().map(|it| self.field(it)).collect();
            fields
        };
        Ok(Saying {
            server: server.to_owned(),
            tools,
            reads: table.reads.map(labels).transpose()?,
            writes: table.writes.map(|it| self.writes(it)).transpose()?,
            destinations: table.destinations.map(fields).transpose()?,
            fixed_destination: table.fixed_destination,
            paths: table.paths.map(fields).transpose()?,
            origin,
        })
    }

    fn label(&self, word: Spanned<String>) -> Result<Label, Problem> {
        Label::parse(word.get_ref()).map_err(|bad| {
            let next = match bad.closest {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "write untrusted, private or private:CLASS".into(),
            };
            self.wrong("label", &word, bad.to_string(), next)
        })
    }

    fn field(&self, text: Spanned<String>) -> Result<Field, Problem> {
        Field::parse(text.get_ref()).map_err(|bad| {
            let meant = text.get_ref().trim_start_matches(['$', '.']);
            let next = format!("did you mean `/{}`?", meant.replace('.', "/"));
            self.wrong("place", &text, bad.to_string(), next)
        })
    }

    fn writes(&self, words: Vec<Spanned<String>>) -> Result<Writes, Problem> {
        let mut writes = Writes {
            external: false,
            state: false,
        };
        for word in words {
            match word.get_ref().as_str() {
                "external" => writes.external = true,
                "state" => writes.state = true,
                other => {
                    let why = format!("`{other}` is neither external nor state");
                    let next = match closest(other, ["external", "state"]) {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => "write external, state, both or []".into(),
                    };
                    return Err(self.wrong("word", &word, why, next));
                }
            }
        }
        Ok(writes)
    }

    fn wrong(&self, kind: &str, at: &Spanned<String>, why: String, next: String) -> Problem {
        let origin = self.origin(at.span().start);
        let what = format!("the {kind} `{}` ({origin}) cannot be used", at.get_ref());
        invalid(what, why, next)
    }
}

/// What becomes of a root that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbsentRoot {
    Refused,
    /// Its name alone counts: no call is made.
    Remarked,
}

/// All files together, and what is worth a remark. The same table, or the same root, in two of
/// them is a mistake.
pub(super) fn gather(
    files: Vec<FileFlow>,
    absent: AbsentRoot,
) -> Result<(FlowConfig, Vec<Problem>), Problem> {
    let mut flow = FlowConfig::default();
    let mut remarks = Vec::new();
    let mut known = Vec::new();
    let mut labels = Vec::new();
    for file in files {
        for saying in file.sayings {
            let same = |it: &&Saying| it.server == saying.server && it.tools == saying.tools;
            if let Some(earlier) = flow.sayings.0.iter().find(same) {
                let what = match &saying.tools {
                    Some(tool) => format!("the labels of `{}.{tool}`", saying.server),
                    None => format!("the labels of `{}`", saying.server),
                };
                return Err(twice(&what, &earlier.origin, &saying.origin));
            }
            flow.sayings.0.push(saying);
        }
        for (name, path, origin) in file.roots {
            remarks.extend(add_root(&mut flow.roots, (name, path), &origin, absent)?);
        }
        known.extend(file.known);
        labels.extend(file.input_labels);
    }
    for at in &known {
        // One by one, so that a mistake is told with its place.
        Known::configured([at.text.as_str()]).map_err(|bad| {
            let what = format!(
                "the destination `{}` ({}) cannot be used",
                at.text, at.origin
            );
            invalid_at(&at.origin, what, bad.to_string(), "correct it")
        })?;
    }
    let texts = known.iter().map(|at| at.text.as_str());
    flow.known = Known::configured(texts)
        .map_err(|bad| invalid("a known destination cannot be used", bad.to_string(), ""))?;
    flow.input_labels = labels.into_iter().collect();
    Ok((flow, remarks))
}

fn add_root(
    roots: &mut BTreeMap<String, PathBuf>,
    (name, path): (String, PathBuf),
    origin: &str,
    absent: AbsentRoot,
) -> Result<Option<Problem>, Problem> {
    let what = format!("the root `{name}` ({origin}) cannot be used");
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-'))
        && name != OUTSIDE;
    if !fits {
        let why = format!(
            "a root is called by lower-case letters, digits, `_` and `-`, and not `{OUTSIDE}`"
        );
        return Err(invalid_at(origin, what, why, "give it another name"));
    }
    let (real, remark) = match folder(&path) {
        Ok(real) => (real, None),
        Err((why, _)) if absent == AbsentRoot::Remarked => {
            let what = format!("the root `{name}` ({origin}) is not there");
            let next = "no call is made here; where calls are made it has to be a folder";
            (path, Some(invalid(what, why, next)))
        }
        Err((why, next)) => return Err(invalid_at(origin, what, why, next)),
    };
    if roots.insert(name, real).is_some() {
        return Err(invalid_at(
            origin,
            what,
            "it is named twice",
            "give one of them another name",
        ));
    }
    Ok(remark)
}

/// Where a root really is; otherwise why it cannot be one, and what to do.
fn folder(path: &Path) -> Result<PathBuf, (String, &'static str)> {
    let real = std::fs::canonicalize(path).map_err(|error| {
        let why = format!("{}: {error}", path.display());
        (why, "name a folder that there is")
    })?;
    match real.is_dir() {
        true => Ok(real),
        false => Err((
            format!("{} is not a folder", path.display()),
            "name a folder",
        )),
    }
}

fn twice(what: &str, earlier: &str, later: &str) -> Problem {
    invalid(
        format!("{what} stand twice"),
        format!("in {earlier} and in {later}"),
        "leave one of the tables away",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r##"
known_destinations = ["@corp.example", "docs.rs"]
input_reads = ["private"]

[labels.mail]
reads = ["untrusted", "private:mail"]
writes = []

[labels.mail.tools."send*"]
reads = []
writes = ["external"]
destinations = ["/to/*", "/cc"]
"##;

    #[test]
    fn tables_are_read_with_their_places() {
        let files = vec![parse("l.toml", WHOLE).unwrap()];
        let (flow, _) = gather(files, AbsentRoot::Refused).unwrap();
        let origins: Vec<_> = flow.sayings.0.iter().map(|it| it.origin.as_str()).collect();
        assert_eq!(origins, ["l.toml:5", "l.toml:9"]);
        let send = &flow.sayings.0[1];
        assert_eq!(send.tools.as_deref(), Some("send*"));
        assert!(send.writes.unwrap().external && !send.writes.unwrap().state);
        assert_eq!(send.destinations.as_ref().unwrap().len(), 2);
        assert!(flow.input_labels.is_private() && !flow.known.is_empty());
    }

    #[test]
    fn what_cannot_be_used_says_where_and_what_was_meant() {
        for (text, what, next) in [
            (
                "[labels.a]\nreads = [\"untrustd\"]",
                "the label `untrustd` (l.toml:2)",
                "did you mean `untrusted`?",
            ),
            (
                "[labels.a]\nwrites = [\"extrenal\"]",
                "the word `extrenal` (l.toml:2)",
                "did you mean `external`?",
            ),
            (
                "[labels.a]\n\ndestinations = [\"$.to\"]",
                "the place `$.to` (l.toml:3)",
                "did you mean `/to`?",
            ),
            (
                "[labels.a]\nraeds = []",
                "l.toml, line 2 cannot be read",
                "did you mean `reads`?",
            ),
            (
                "[roots]\nUp = \"/\"",
                "the root `Up` (l.toml:2)",
                "give it another name",
            ),
            (
                "[roots]\noutside = \"/\"",
                "the root `outside` (l.toml:2)",
                "give it another name",
            ),
            (
                "[roots]\nx = \"/no/such/folder\"",
                "the root `x` (l.toml:2)",
                "name a folder that there is",
            ),
            (
                "[roots]\nx = \"/etc/passwd\"",
                "the root `x` (l.toml:2)",
                "name a folder",
            ),
            (
                "known_destinations = [\"https://u@x/\"]",
                "the destination `https://u@x/` (l.toml:1)",
                "correct it",
            ),
        ] {
            let problem = parse("l.toml", text)
                .and_then(|file| gather(vec![file], AbsentRoot::Refused))
                .map(|_| ())
                .unwrap_err();
            assert!(
                problem.what.starts_with(what) && problem.next == next,
                "{problem}"
            );
        }
    }

    #[test]
    fn the_same_table_in_two_files_is_a_mistake() {
        let file = |name| parse(name, "[labels.a]\nreads = []").unwrap();
        let problem = gather(vec![file("a.toml"), file("b.toml")], AbsentRoot::Refused)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(problem.why, "in a.toml:1 and in b.toml:1");
    }

    #[test]
    fn where_no_call_is_made_a_root_that_is_not_there_is_a_remark() {
        let text = "[roots]\ngone = \"/no/such/folder\"\nfile = \"/etc/passwd\"\nhere = \"/\"";
        let files = || vec![parse("a.toml", text).unwrap()];
        assert!(gather(files(), AbsentRoot::Refused).is_err());
        let (flow, remarks) = gather(files(), AbsentRoot::Remarked).unwrap();
        assert_eq!(flow.roots.len(), 3);
        let whats: Vec<_> = remarks.iter().map(|it| it.what.as_str()).collect();
        let is_not_there = ["gone` (a.toml:2)", "file` (a.toml:3)"];
        let expected = is_not_there.map(|it| format!("the root `{it} is not there"));
        assert_eq!(whats, {
            let mut expected = expected.to_vec();
            expected.sort();
            expected
        });
        let misnamed = vec![parse("a.toml", "[roots]\nUp = \"/gone\"").unwrap()];
        assert!(gather(misnamed, AbsentRoot::Remarked).is_err());
    }
}
