//! Plans the change of one host: which servers move, what airlock's configuration says about them,
//! and what the host's file says afterwards.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::command::AirlockCommand;
use super::credentials::Variables;
use super::disabled;
use super::entry::{self, Entry};
use super::host_file::{self, AIRLOCK, is_airlock};
use super::known::{HostFile, HostKind};
use super::toml_text;
use crate::config::server::{ServerTarget, renamed};

/// What a value that is not shown is replaced with.
const HIDDEN: &str = "…";
/// The name of airlock's configuration in its folder.
pub(crate) const CONFIG: &str = "airlock.toml";

/// The planned change of one place in a host's file.
#[derive(Debug)]
pub(crate) struct HostPlan {
    pub(crate) file: HostFile,
    /// The names of the servers that move behind airlock, in the host and in airlock.
    pub(crate) moved: Vec<(String, String)>,
    /// The servers that stay in the host's file, and why.
    pub(crate) stays: Vec<(String, String)>,
    /// Settings of moved servers that have no effect behind airlock.
    pub(crate) ignored: Vec<String>,
    /// What was taken for a credential because of its shape alone.
    pub(crate) found: Vec<String>,
    /// The part of `airlock.toml` that says which servers there are.
    pub(crate) servers: String,
    /// The rules that the host's own lists of tools require.
    pub(crate) rules: String,
    /// The variables of airlock's entry. Their values may be credentials.
    pub(crate) variables: BTreeMap<String, String>,
    /// The lines removed from and added to the host's file, without credentials.
    pub(crate) changes: Vec<String>,
    removed: Vec<String>,
    entry: Value,
}

impl HostPlan {
    /// Returns the text of the host's file after the change.
    pub(crate) fn edited(&self, text: &str) -> Result<String, String> {
        let format = self.file.kind.format();
        host_file::edit(format, text, &self.file.keys, &self.removed, &self.entry)
            .map_err(|error| error.to_string())
    }
}

/// Plans the change of one place. Returns `None` if it lists no servers.
pub(crate) fn plan(
    file: HostFile,
    text: &str,
    airlock: &AirlockCommand,
) -> Result<Option<HostPlan>, String> {
    let listed = host_file::servers(file.kind.format(), text, &file.keys);
    let listed = listed.map_err(|error| error.to_string())?;
    if listed.is_empty() {
        return Ok(None);
    }
    if listed.contains_key(AIRLOCK) || listed.values().any(is_airlock) {
        let stays = |name: &String| (name.clone(), "the host already uses airlock".to_owned());
        return Ok(Some(HostPlan {
            stays: listed.keys().map(stays).collect(),
            ..HostPlan::unchanged(file)
        }));
    }
    let off = disabled::find(&file)?;
    let mut plan = HostPlan::unchanged(file);
    let mut entries = Vec::new();
    for (name, value) in &listed {
        let read = match off.why(name) {
            Some(why) => Err(why),
            None => entry::read(&plan.file, name, value),
        };
        match read {
            Ok(entry) => entries.push((name, entry)),
            Err(why) => plan.stays.push((name.clone(), why)),
        }
    }
    // References to variables of the host itself need no variable of airlock's entry.
    let passed = entries.iter().flat_map(|(_, entry)| &entry.passed);
    let passed: BTreeSet<String> = passed.cloned().collect();
    let mut draft = Draft {
        plan,
        variables: Variables::new(passed.clone()),
        passed,
        denied: Vec::new(),
    };
    for (name, entry) in entries {
        draft.take(name, entry);
    }
    Ok(Some(draft.finish(airlock)))
}

impl HostPlan {
    fn unchanged(file: HostFile) -> Self {
        Self {
            file,
            moved: Vec::new(),
            stays: Vec::new(),
            ignored: Vec::new(),
            found: Vec::new(),
            servers: String::new(),
            rules: String::new(),
            variables: BTreeMap::new(),
            changes: Vec::new(),
            removed: Vec::new(),
            entry: Value::Null,
        }
    }
}

struct Draft {
    plan: HostPlan,
    variables: Variables,
    passed: BTreeSet<String>,
    denied: Vec<String>,
}

impl Draft {
    fn take(&mut self, listed: &str, entry: Entry) {
        let name = self.free_name(listed);
        let passed: BTreeSet<String> = entry.passed.into_iter().collect();
        let target = self.protected(&name, entry.server.target, &passed);
        self.plan
            .servers
            .push_str(&toml_text::server(&name, &target));
        let denied = entry.denied.iter().map(|tool| format!("{name}.{tool}"));
        self.denied.extend(denied);
        self.plan.ignored.extend(entry.ignored);
        let shown = hidden(&shown(&target), false);
        self.plan
            .changes
            .push(format!("- {}: {shown}", json!(listed)));
        self.plan.removed.push(listed.to_owned());
        self.plan.moved.push((listed.to_owned(), name));
    }

    /// Returns a name that airlock accepts and no other server has.
    fn free_name(&self, listed: &str) -> String {
        let name = renamed(listed);
        let is_taken = |name: &str| self.plan.moved.iter().any(|(_, taken)| taken == name);
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|it| !is_taken(it) && it != AIRLOCK);
        free.unwrap_or(name)
    }

    /// Moves the credentials of a target to variables.
    fn protected(
        &mut self,
        name: &str,
        target: ServerTarget,
        passed: &BTreeSet<String>,
    ) -> ServerTarget {
        let variables = &mut self.variables;
        let is_passed = |text: &str| {
            let text = text.strip_prefix("Bearer ").unwrap_or(text);
            let inner = text
                .strip_prefix("${env:")
                .and_then(|it| it.strip_suffix('}'));
            inner.is_some_and(|it| passed.contains(it))
        };
        match target {
            ServerTarget::Stdio {
                command,
                args,
                env,
                cwd,
            } => ServerTarget::Stdio {
                command: variables.of_command(name, &command),
                args: variables.of_arguments(name, &args),
                env: env
                    .into_iter()
                    .map(|(key, value)| match is_passed(&value) {
                        true => (key, value),
                        false => {
                            let text = variables.of_variable(name, &key, &value);
                            (key, text)
                        }
                    })
                    .collect(),
                cwd,
            },
            ServerTarget::Http { url, headers } => ServerTarget::Http {
                url: variables.of_address(name, &url),
                headers: headers
                    .into_iter()
                    .map(|(key, value)| match is_passed(&value) {
                        true => (key, value),
                        false => {
                            let text = variables.of_header(name, &key, &value);
                            (key, text)
                        }
                    })
                    .collect(),
            },
        }
    }

    fn finish(self, airlock: &AirlockCommand) -> HostPlan {
        let mut plan = self.plan;
        if plan.moved.is_empty() {
            return plan;
        }
        plan.ignored.extend(airlock.needs(&plan.file));
        let unknown = plan.file.kinds().filter_map(HostKind::unknown_states);
        plan.ignored.extend(unknown);
        plan.rules = toml_text::denied(&self.denied);
        plan.variables = self.variables.values();
        plan.found = self.variables.found;
        plan.entry = entry_of_airlock(&plan.file, airlock, &plan.variables, &self.passed);
        let line = format!("+ {}: {}", json!(AIRLOCK), hidden(&plan.entry, true));
        plan.changes.push(line);
        plan
    }
}

/// Returns the entry of the host's file that starts airlock.
fn entry_of_airlock(
    file: &HostFile,
    airlock: &AirlockCommand,
    variables: &BTreeMap<String, String>,
    passed: &BTreeSet<String>,
) -> Value {
    let (program, mut args) = airlock.words(file);
    args.extend(["serve".to_owned(), "--config".to_owned(), config_path(file)]);
    let mut entry = Map::new();
    if file.kind == HostKind::VsCode {
        entry.insert("type".into(), "stdio".into());
    }
    entry.insert("command".into(), program.into());
    entry.insert("args".into(), args.into());
    if !variables.is_empty() {
        entry.insert("env".into(), json!(variables));
    }
    if !passed.is_empty() {
        entry.insert("env_vars".into(), json!(passed));
    }
    Value::Object(entry)
}

/// Returns the path of airlock's configuration as the host's entry names it. A project's file names
/// it from the project's folder, because other people use the file too.
fn config_path(file: &HostFile) -> String {
    match (file.folder_in_project(), file.kind) {
        (Some(inside), HostKind::VsCode | HostKind::Cursor) => {
            format!("${{workspaceFolder}}/{}/{CONFIG}", inside.display())
        }
        (Some(inside), _) => format!("{}/{CONFIG}", inside.display()),
        (None, _) => file.folder.join(CONFIG).display().to_string(),
    }
}

/// Returns a target as an entry of a host.
fn shown(target: &ServerTarget) -> Value {
    match target {
        ServerTarget::Stdio {
            command, args, env, ..
        } => match env.is_empty() {
            true => json!({"command": command, "args": args}),
            false => json!({"command": command, "args": args, "env": env}),
        },
        ServerTarget::Http { url, headers } => match headers.is_empty() {
            true => json!({"url": url}),
            false => json!({"url": url, "headers": headers}),
        },
    }
}

/// Returns an entry in which no value is a credential: all variables of airlock's own entry, and
/// all texts that became placeholders, are hidden.
fn hidden(entry: &Value, is_airlock: bool) -> Value {
    let mut entry = entry.clone();
    for (key, value) in entry.as_object_mut().into_iter().flatten() {
        let hides_all = is_airlock && key == "env";
        hide(value, hides_all);
    }
    entry
}

fn hide(value: &mut Value, all: bool) {
    match value {
        Value::String(text) if all => HIDDEN.clone_into(text),
        Value::String(text) => {
            if let Some((before, rest)) = text.split_once("${env:") {
                let after = rest.split_once('}').map_or("", |(_, after)| after);
                *text = format!("{before}{HIDDEN}{after}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|it| hide(it, all)),
        Value::Object(members) => members.values_mut().for_each(|it| hide(it, all)),
        _ => {}
    }
}
