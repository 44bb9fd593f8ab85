//! The texts of the new files.

use std::collections::BTreeMap;

use serde_json::Value;

use super::guess::GuessedTool;

/// The group of the tools that a rule permits without asking.
const READS: &str = "reads";
/// The group of the tools that are asked about each time.
const DESTROYS: &str = "destroys";

const OWNER: &str = "@owner(\"unassigned\")";

pub(super) fn rules(tools: &[GuessedTool]) -> String {
    let mut text = String::from(
        "// Written by `airlock policy init`, to be edited. The groups are in airlock.toml.\n//\n\
         // Tools of the group `reads` are permitted. Everything else is asked about.\n\
         // Write the name of the person or team that answers for a rule into @owner.\n",
    );
    if tools.iter().any(|it| it.only_reads) {
        text.push_str(&format!(
            "\n@id(\"reads\")\n{OWNER}\n\
             @reason(\"the tool is in the group `reads`, and its labels say that it writes nothing\")\n\
             permit(principal, action in Action::\"group:{READS}\", resource)\n\
             when {{ !context.writes.external && !context.writes.state }};\n"
        ));
    }
    text.push_str(&format!(
        "\n@id(\"asks\")\n{OWNER}\n\
         @reason(\"no other rule permits the call without asking\")\n\
         @prompt(\"May this tool be used in this run?\")\n\
         permit(principal, action, resource)\n\
         when {{ context.approval >= 1 }};\n"
    ));
    if tools.iter().any(|it| it.destroys) {
        text.push_str(&format!(
            "\n@id(\"destroys\")\n{OWNER}\n\
             @reason(\"the tool is in the group `destroys`\")\n\
             @prompt(\"This tool destroys something. Allow exactly this call?\")\n\
             forbid(principal, action in Action::\"group:{DESTROYS}\", resource)\n\
             unless {{ context.approval >= 2 }};\n"
        ));
    }
    text.push_str(&format!(
        "\n@id(\"private-to-unknown\")\n{OWNER}\n\
         @reason(\"the run has read private data, and no trusted source names the destination\")\n\
         @prompt(\"The run has read private data, and no trusted source names this destination. \
         Allow exactly this call?\")\n\
         forbid(principal, action, resource)\n\
         when {{\n  context.writes.external &&\n  context.labels.contains(\"private\") &&\n  \
         !(context has dest_explained && context.dest_explained)\n}}\n\
         unless {{ context.approval >= 2 }};\n\
         \n@id(\"changed\")\n{OWNER}\n\
         @reason(\"the tool's description differs from the accepted one in the lock file\")\n\
         forbid(principal, action, resource)\n\
         when {{ context has pinned && !context.pinned }};\n"
    ));
    text
}

pub(super) fn cases(tools: &[GuessedTool]) -> String {
    let mut text = String::from(
        "# Written by `airlock policy init`, to be edited. A fact that a case does not give follows\n\
         # from the labels and roots in airlock.toml, or has its worst value. Run the cases with\n\
         # `airlock policy test FOLDER --config FOLDER/airlock.toml` and `--lock FILE` or\n\
         # `--from FILE`, which name the tools.\n",
    );
    let mut first = None;
    for tool in tools {
        let id = tool.id();
        let Some(example) = &tool.example else {
            text.push_str(&format!(
                "\n# No arguments could be made for {id}. Write a case by hand.\n"
            ));
            continue;
        };
        first.get_or_insert((tool, example));
        let (name, facts, level, rule) = match (tool.only_reads, tool.destroys) {
            (true, _) => (
                "permitted, whatever the run has read",
                "labels = [\"private\", \"untrusted\"]",
                "allow",
                "reads",
            ),
            (_, true) => (
                "asked about each time",
                "labels = []",
                "ask-call",
                "destroys",
            ),
            _ => ("asked about", "labels = []", "ask", "asks"),
        };
        text.push_str(&case(
            &format!("{id} is {name}"),
            (&id, example),
            facts,
            (level, rule),
        ));
    }
    if let Some((tool, example)) = first {
        let id = tool.id();
        text.push_str(&case(
            &format!("private data in {id} for an unknown destination is asked about each time"),
            (&id, example),
            "writes = { external = true, state = false }, labels = [\"private\"], \
             dest_explained = false",
            ("ask-call", "private-to-unknown"),
        ));
        text.push_str(&case(
            &format!("{id} is denied if its description has changed"),
            (&id, example),
            "labels = [], writes = { external = false, state = false }, pinned = false",
            ("deny", "changed"),
        ));
        // If every tool with an example has a rule of its own, nothing has tested `asks` so far.
        let is_asked = |it: &&GuessedTool| it.example.is_some() && !it.only_reads && !it.destroys;
        if !tools.iter().any(|it| is_asked(&it)) && !tool.destroys {
            text.push_str(&case(
                &format!("{id} is asked about if its labels say that it writes"),
                (&id, example),
                "writes = { external = true, state = true }, labels = []",
                ("ask", "asks"),
            ));
        }
    }
    text
}

fn case(
    name: &str,
    (id, args): (&str, &Value),
    facts: &str,
    (level, rule): (&str, &str),
) -> String {
    format!(
        "\n[[cases]]\nname = {}\ntool = {}\nargs = {}\nfacts = {{ {facts} }}\nlevel = \"{level}\"\n\
         rules = [\"{rule}\"]\n",
        quoted(name),
        quoted(id),
        toml_value(args)
    )
}

/// The beginning of a configuration that has no servers.
pub(super) const CONFIG_HEADER: &str = "\
# Written by `airlock policy init`, to be edited. Use it beside the configuration of your
# servers: `airlock run SCRIPT --mcp-config FILE --config FOLDER/airlock.toml`. If your
# servers are in an airlock.toml, move these tables into that file, write
# `policies = [\"FOLDER\"]` there, and name that file with --config in every command.
#
";

/// Returns the groups and labels. `root` is the folder with the name `project`.
pub(super) fn config(tools: &[GuessedTool], root: &str) -> String {
    let mut text = String::from(
        "# GUESS marks what a server claims about itself, or what the name of an argument suggests.\n\
         # Check each guess, correct it, and remove the mark.\n\n\
         policies = [\".\"]\n\n[groups]\n",
    );
    text.push_str("# GUESS: the servers claim that these tools only read.\n");
    text.push_str(&group(READS, tools.iter().filter(|it| it.only_reads)));
    if tools.iter().any(|it| it.destroys) {
        text.push_str("# GUESS: the servers claim that these tools destroy something.\n");
        text.push_str(&group(DESTROYS, tools.iter().filter(|it| it.destroys)));
    }
    if tools.iter().any(|it| !it.paths.is_empty()) {
        text.push_str(
            "\n# Folders whose paths rules can recognise. A path outside all of them counts as \
             `outside`, and so\n# does a relative path, unless `path_base` in [labels.SERVER] \
             names the folder at which it begins.\n",
        );
        text.push_str(&format!("[roots]\nproject = {}\n", quoted(root)));
    }
    let mut servers: BTreeMap<&str, Vec<&GuessedTool>> = BTreeMap::new();
    for tool in tools {
        servers.entry(&tool.server).or_default().push(tool);
    }
    for (server, tools) in servers {
        text.push_str(&format!(
            "\n# Whatever `{server}` returns may be private, and an outsider may have written it.\n\
             # Remove a label that cannot apply; write private:CLASS to tell classes apart.\n\
             [labels.{server}]\nreads = [\"untrusted\", \"private\"]\n\
             writes = [\"external\", \"state\"]\n"
        ));
        for tool in tools {
            text.push_str(&labels(tool));
        }
    }
    text
}

fn group<'a>(name: &str, tools: impl Iterator<Item = &'a GuessedTool>) -> String {
    let lines: String = tools
        .map(|it| format!("  {},\n", quoted(&it.id())))
        .collect();
    match lines.is_empty() {
        true => format!("{name} = []\n"),
        false => format!("{name} = [\n{lines}]\n"),
    }
}

fn labels(tool: &GuessedTool) -> String {
    let mut lines = String::new();
    if tool.only_reads {
        lines.push_str("writes = []   # GUESS: the server claims that the tool only reads\n");
    } else if tool.claims_read_only {
        let names = match tool.has_destination {
            true => "names",
            false => "may name",
        };
        lines.push_str(&format!(
            "writes = [\"external\"]   # GUESS: the server claims that the tool only reads, and an \
             argument {names} where data goes\n"
        ));
    } else if tool.is_closed {
        lines.push_str(
            "writes = [\"state\"]   # GUESS: the server claims that the tool reaches nothing outside\n",
        );
    }
    if !tool.destinations.is_empty() && tool.sends() {
        let fields = toml_value(&tool.destinations.clone().into());
        lines.push_str(&format!(
            "destinations = {fields}   # GUESS: from the names of the arguments\n"
        ));
    }
    if !tool.paths.is_empty() {
        let fields = toml_value(&tool.paths.clone().into());
        lines.push_str(&format!(
            "paths = {fields}   # GUESS: from the names of the arguments\n"
        ));
    }
    if lines.is_empty() {
        return String::new();
    }
    let (server, name) = (&tool.server, quoted(&tool.name));
    format!("\n[labels.{server}.tools.{name}]\n{lines}")
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Writes a JSON value as TOML in one line.
fn toml_value(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| format!("{} = {}", quoted(name), toml_value(value)));
            let members: Vec<String> = members.collect();
            match members.is_empty() {
                true => "{}".to_owned(),
                false => format!("{{ {} }}", members.join(", ")),
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}
