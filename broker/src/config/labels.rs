//! Parses labels, roots and known destinations. Their tables are the same in `airlock.toml` and in
//! a file of their own (`--labels`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airlock_core::facts::OUTSIDE;
use airlock_core::flow::{KnownDestinations, LabelConfig, LabelRule};
use airlock_core::labels::{Field, Label, Labels, Writes};
use airlock_core::policy::ConfiguredWords;
use airlock_core::problem::Problem;
use codegen::closest::closest;
use serde::Deserialize;
use toml::Spanned;

use super::located::{LineIndex, LocatedText, unreadable};
use super::{invalid, invalid_at};

/// The settings about data flow from all files: where data comes from and where it may go.
#[derive(Debug, Clone, Default)]
pub struct FlowConfig {
    pub label_config: LabelConfig,
    /// Folders by name. Facts about a call name the root that contains each path of the call.
    pub roots: BTreeMap<String, PathBuf>,
    /// By server: the folder at which its relative paths begin.
    pub path_bases: BTreeMap<String, PathBuf>,
    /// Destinations that count as explained.
    pub known: KnownDestinations,
    /// The labels of a run's input.
    pub input_labels: Labels,
    /// Whether a file was read that could label tools.
    pub is_configured: bool,
    /// The roots that are no folders, with the place of their definition. Empty unless they were
    /// permitted.
    pub missing_roots: Vec<(String, String)>,
}

impl FlowConfig {
    /// Returns whether nothing is configured. Data flow is then not tracked for this configuration.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.label_config.is_empty()
            && self.roots.is_empty()
            && self.known.is_empty()
            && self.input_labels.is_empty()
    }
}

impl FlowConfig {
    /// Returns the names that facts can contain, if a file labels tools or configures roots.
    pub(super) fn words(&self) -> Option<ConfiguredWords> {
        let is_about_flow = !self.label_config.is_empty() || !self.roots.is_empty();
        let rules = self.label_config.0.iter();
        let read = rules.filter_map(|it| it.reads.as_ref());
        let labels = read.flat_map(Labels::iter).chain(self.input_labels.iter());
        is_about_flow.then(|| ConfiguredWords {
            roots: self.roots.keys().cloned().collect(),
            labels: labels.map(ToString::to_string).collect(),
        })
    }
}

/// The tables of a document that configure labels, roots and destinations.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LabelTables {
    #[serde(default)]
    pub(super) labels: BTreeMap<String, Spanned<ServerLabelTable>>,
    #[serde(default)]
    pub(super) roots: BTreeMap<String, Spanned<PathBuf>>,
    #[serde(default)]
    pub(super) known_destinations: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) input_reads: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerLabelTable {
    reads: Option<Vec<Spanned<String>>>,
    writes: Option<Vec<Spanned<String>>>,
    destinations: Option<Vec<Spanned<String>>>,
    fixed_destination: Option<bool>,
    paths: Option<Vec<Spanned<String>>>,
    path_base: Option<PathBuf>,
    #[serde(default)]
    tools: BTreeMap<String, Spanned<ToolLabelTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolLabelTable {
    reads: Option<Vec<Spanned<String>>>,
    writes: Option<Vec<Spanned<String>>>,
    destinations: Option<Vec<Spanned<String>>>,
    fixed_destination: Option<bool>,
    paths: Option<Vec<Spanned<String>>>,
}

/// The content of one file.
#[derive(Debug, Default)]
pub(crate) struct FileFlow {
    label_config: Vec<LabelRule>,
    roots: Vec<(String, PathBuf, String)>,
    path_bases: BTreeMap<String, PathBuf>,
    known: Vec<LocatedText>,
    input_labels: Vec<Label>,
}

impl FileFlow {
    /// Makes the roots and the bases of paths relative to the folder of the file.
    pub(super) fn beside(mut self, folder: &Path) -> Self {
        let roots = self.roots.iter_mut().map(|(_, path, _)| path);
        for path in roots.chain(self.path_bases.values_mut()) {
            *path = folder.join(&path);
        }
        self
    }
}

pub(crate) fn parse(name: &str, text: &str) -> Result<FileFlow, Problem> {
    let tables: LabelTables =
        toml::from_str(text).map_err(|error| unreadable(name, text, &error, LABELS_HELP))?;
    read(name, &LineIndex::new(text), tables)
}

const LABELS_HELP: &str = "correct the file; docs/configuration.md lists all keys";

pub(super) fn read(
    name: &str,
    lines: &LineIndex,
    tables: LabelTables,
) -> Result<FileFlow, Problem> {
    let file = File { name, lines };
    let mut flow = FileFlow::default();
    for (server, table) in tables.labels {
        let origin = file.origin(table.span().start);
        let ServerLabelTable {
            reads,
            writes,
            destinations,
            fixed_destination,
            paths,
            path_base,
            tools,
        } = table.into_inner();
        flow.path_bases
            .extend(path_base.map(|base| (server.clone(), base)));
        let own = ToolLabelTable {
            reads,
            writes,
            destinations,
            fixed_destination,
            paths,
        };
        flow.label_config
            .push(file.saying(&server, None, own, origin)?);
        for (tool, table) in tools {
            let origin = file.origin(table.span().start);
            let saying = file.saying(&server, Some(tool), table.into_inner(), origin)?;
            flow.label_config.push(saying);
        }
    }
    for (root, path) in tables.roots {
        let origin = file.origin(path.span().start);
        flow.roots.push((root, path.into_inner(), origin));
    }
    for known in tables.known_destinations {
        let origin = file.origin(known.span().start);
        let text = known.into_inner();
        flow.known.push(LocatedText { text, origin });
    }
    for label in tables.input_reads {
        flow.input_labels.push(file.label(label)?);
    }
    Ok(flow)
}

struct File<'a> {
    name: &'a str,
    lines: &'a LineIndex,
}

impl File<'_> {
    fn origin(&self, at: usize) -> String {
        format!("{}:{}", self.name, self.lines.line(at))
    }

    fn saying(
        &self,
        server: &str,
        tools: Option<String>,
        table: ToolLabelTable,
        origin: String,
    ) -> Result<LabelRule, Problem> {
        let labels = |words: Vec<Spanned<String>>| {
            let labels: Result<Labels, _> = words.into_iter().map(|it| self.label(it)).collect();
            labels
        };
        let fields = |texts: Vec<Spanned<String>>| {
            let fields: Result<Vec<_>, _> = texts.into_iter().map(|it| self.field(it)).collect();
            fields
        };
        Ok(LabelRule {
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
            self.wrong("JSON pointer", &text, bad.to_string(), next)
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
                    let why = "expected external or state".to_owned();
                    let next = match closest(other, ["external", "state"]) {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => "write external, state, both or []".into(),
                    };
                    return Err(self.wrong("`writes` value", &word, why, next));
                }
            }
        }
        Ok(writes)
    }

    fn wrong(&self, kind: &str, at: &Spanned<String>, why: String, next: String) -> Problem {
        let origin = self.origin(at.span().start);
        let what = format!("invalid {kind} `{}` ({origin})", at.get_ref());
        invalid(what, why, next)
    }
}

/// How a missing root folder is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingRoot {
    Refused,
    /// Reported as a warning. Used if no call is made, because then only the name of the root
    /// matters.
    Remarked,
}

/// Combines all files. Returns the configuration and the warnings. A label table or a root that is
/// in two files is an error.
pub(super) fn gather(
    files: Vec<FileFlow>,
    absent: MissingRoot,
) -> Result<(FlowConfig, Vec<Problem>), Problem> {
    let mut flow = FlowConfig {
        is_configured: !files.is_empty(),
        ..FlowConfig::default()
    };
    let mut warnings = Vec::new();
    let mut known = Vec::new();
    let mut labels = Vec::new();
    for file in files {
        for saying in file.label_config {
            let same = |it: &&LabelRule| it.server == saying.server && it.tools == saying.tools;
            if let Some(earlier) = flow.label_config.0.iter().find(same) {
                let what = match &saying.tools {
                    Some(tool) => format!("the labels of `{}.{tool}`", saying.server),
                    None => format!("the labels of `{}`", saying.server),
                };
                return Err(twice(&what, &earlier.origin, &saying.origin));
            }
            flow.label_config.0.push(saying);
        }
        for (server, base) in file.path_bases {
            let base = std::path::absolute(&base).unwrap_or(base);
            flow.path_bases.insert(server, base);
        }
        for (name, path, origin) in file.roots {
            if let Some(warning) = add_root(&mut flow.roots, (&name, path), &origin, absent)? {
                warnings.push(warning);
                flow.missing_roots.push((name, origin));
            }
        }
        known.extend(file.known);
        labels.extend(file.input_labels);
    }
    for at in &known {
        // Each destination is checked separately, so that an error names its place.
        KnownDestinations::configured([at.text.as_str()]).map_err(|bad| {
            let what = format!("invalid destination `{}` ({})", at.text, at.origin);
            invalid_at(&at.origin, what, bad.to_string(), "correct the destination")
        })?;
    }
    let texts = known.iter().map(|at| at.text.as_str());
    flow.known = KnownDestinations::configured(texts)
        .map_err(|bad| invalid("invalid known destination", bad.to_string(), ""))?;
    flow.input_labels = labels.into_iter().collect();
    Ok((flow, warnings))
}

fn add_root(
    roots: &mut BTreeMap<String, PathBuf>,
    (name, path): (&str, PathBuf),
    origin: &str,
    absent: MissingRoot,
) -> Result<Option<Problem>, Problem> {
    let what = format!("invalid root `{name}` ({origin})");
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-'))
        && name != OUTSIDE;
    if !fits {
        let why = format!(
            "expected a lower-case letter, then lower-case letters, digits, `_` or `-`; `{OUTSIDE}` is reserved"
        );
        return Err(invalid_at(origin, what, why, "rename the root"));
    }
    let (real, remark) = match folder(&path) {
        Ok(real) => (real, None),
        Err((why, _)) if absent == MissingRoot::Remarked => {
            let what = format!("the root `{name}` ({origin}) is not an existing folder");
            let next = "this command makes no call and continues; a run needs the folder";
            (
                std::path::absolute(&path).unwrap_or(path),
                Some(invalid(what, why, next)),
            )
        }
        Err((why, next)) => return Err(invalid_at(origin, what, why, next)),
    };
    if roots.insert(name.to_owned(), real).is_some() {
        return Err(invalid_at(
            origin,
            what,
            "the root is defined twice",
            "rename one of the roots",
        ));
    }
    Ok(remark)
}

/// Returns the real path of a root, or the reason why the path is invalid, with advice.
fn folder(path: &Path) -> Result<PathBuf, (String, &'static str)> {
    let real = std::fs::canonicalize(path).map_err(|error| {
        let why = format!("{}: {error}", path.display());
        (why, "name a folder that exists")
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
        format!("{what} are defined twice"),
        format!("in {earlier} and in {later}"),
        "remove one of the tables",
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
    fn label_tables_parse_with_places() {
        let files = vec![parse("l.toml", WHOLE).unwrap()];
        let (flow, _) = gather(files, MissingRoot::Refused).unwrap();
        let origins: Vec<_> = flow
            .label_config
            .0
            .iter()
            .map(|it| it.origin.as_str())
            .collect();
        assert_eq!(origins, ["l.toml:5", "l.toml:9"]);
        let send = &flow.label_config.0[1];
        assert_eq!(send.tools.as_deref(), Some("send*"));
        assert!(send.writes.unwrap().external && !send.writes.unwrap().state);
        assert_eq!(send.destinations.as_ref().unwrap().len(), 2);
        assert!(flow.input_labels.is_private() && !flow.known.is_empty());
    }

    #[test]
    fn label_errors_name_place_and_suggestion() {
        for (text, what, next) in [
            (
                "[labels.a]\nreads = [\"untrustd\"]",
                "invalid label `untrustd` (l.toml:2)",
                "did you mean `untrusted`?",
            ),
            (
                "[labels.a]\nwrites = [\"extrenal\"]",
                "invalid `writes` value `extrenal` (l.toml:2)",
                "did you mean `external`?",
            ),
            (
                "[labels.a]\n\ndestinations = [\"$.to\"]",
                "invalid JSON pointer `$.to` (l.toml:3)",
                "did you mean `/to`?",
            ),
            (
                "[labels.a]\nraeds = []",
                "l.toml, line 2 is invalid",
                "did you mean `reads`?",
            ),
            (
                "[roots]\nUp = \"/\"",
                "invalid root `Up` (l.toml:2)",
                "rename the root",
            ),
            (
                "[roots]\noutside = \"/\"",
                "invalid root `outside` (l.toml:2)",
                "rename the root",
            ),
            (
                "[roots]\nx = \"/no/such/folder\"",
                "invalid root `x` (l.toml:2)",
                "name a folder that exists",
            ),
            (
                "[roots]\nx = \"/etc/passwd\"",
                "invalid root `x` (l.toml:2)",
                "name a folder",
            ),
            (
                "known_destinations = [\"https://u@x/\"]",
                "invalid destination `https://u@x/` (l.toml:1)",
                "correct the destination",
            ),
        ] {
            let problem = parse("l.toml", text)
                .and_then(|file| gather(vec![file], MissingRoot::Refused))
                .map(|_| ())
                .unwrap_err();
            assert!(
                problem.what.starts_with(what) && problem.next == next,
                "{problem}"
            );
        }
    }

    #[test]
    fn same_table_in_two_files_is_an_error() {
        let file = |name| parse(name, "[labels.a]\nreads = []").unwrap();
        let problem = gather(vec![file("a.toml"), file("b.toml")], MissingRoot::Refused)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(problem.why, "in a.toml:1 and in b.toml:1");
    }

    #[test]
    fn missing_root_is_a_warning_when_no_call_is_made() {
        let text = "[roots]\ngone = \"/no/such/folder\"\nfile = \"/etc/passwd\"\nhere = \"/\"";
        let files = || vec![parse("a.toml", text).unwrap()];
        assert!(gather(files(), MissingRoot::Refused).is_err());
        let (flow, warnings) = gather(files(), MissingRoot::Remarked).unwrap();
        assert_eq!(flow.roots.len(), 3);
        let whats: Vec<_> = warnings.iter().map(|it| it.what.as_str()).collect();
        let is_not_there = ["gone` (a.toml:2)", "file` (a.toml:3)"];
        let expected = is_not_there.map(|it| format!("the root `{it} is not an existing folder"));
        assert_eq!(whats, {
            let mut expected = expected.to_vec();
            expected.sort();
            expected
        });
        let misnamed = vec![parse("a.toml", "[roots]\nUp = \"/gone\"").unwrap()];
        assert!(gather(misnamed, MissingRoot::Remarked).is_err());
    }
}
