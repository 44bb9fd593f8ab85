//! What `airlock init` prints: the new configuration of each host, and the lines that its file loses
//! and gets. No credential of a host's file is printed.

use serde_json::{Value, json};

use super::{Findings, HostChange};
use crate::host_setup::{CONFIG, HostPlan, Undone};
use crate::render::counted;

/// Returns the text of a new `airlock.toml`.
pub(super) fn config(plan: &HostPlan, policy: &str) -> String {
    let title = plan.file.titles();
    let approver = match plan.file.asks_its_user() {
        true => String::new(),
        false => format!(
            "# {title} cannot show questions. A page in the browser asks instead.\n\
             approver = \"web\"\n"
        ),
    };
    // The keys of the policy come first, because they belong to no table.
    let (marks, rest) = policy.split_once("policies = ").unwrap_or(("", policy));
    format!(
        "# Written by `airlock init`, to be edited: the servers of {title}.\n\
         # Credentials are in the host's file, in the variables of its entry `airlock`.\n#\n\
         {marks}{approver}policies = {rest}{}{}",
        plan.rules, plan.servers
    )
}

pub(super) fn text(findings: &Findings, written: bool) -> String {
    let mut text = String::new();
    for change in &findings.changes {
        text.push_str(&of_change(change, written));
    }
    for plan in &findings.unchanged {
        text.push_str(&heading(plan));
        text.push_str(&stays(plan));
    }
    for (path, why) in &findings.unreadable {
        text.push_str(&format!("{}: left as it is: {why}\n", path.display()));
    }
    if text.is_empty() {
        text.push_str(
            "no host with servers was found; write the servers into airlock.toml by hand, for \
             example:\n\n[servers.fs]\ncommand = \"npx\"\nargs = [\"-y\", \
             \"@modelcontextprotocol/server-filesystem\", \".\"]\n\nthen run `airlock servers --config \
             airlock.toml`\n",
        );
    }
    text
}

/// Returns what to do next.
pub(super) fn next(findings: &Findings, written: bool) -> &'static str {
    match (findings.changes.is_empty(), written) {
        (true, _) => "",
        (false, false) => "next: `airlock init --write` makes these changes\n",
        (false, true) => {
            "next: `airlock doctor` checks the result, `airlock init --undo` takes it back; then \
             restart the hosts\n"
        }
    }
}

fn of_change(change: &HostChange, written: bool) -> String {
    let plan = &change.plan;
    let folder = plan.file.folder.display();
    let word = if written { "new" } else { "would be new" };
    let policy = &change.policy;
    let mut text = heading(plan);
    for (host, airlock) in plan.moved.iter().filter(|(host, airlock)| host != airlock) {
        text.push_str(&format!("  `{host}` is `{airlock}` in airlock\n"));
    }
    text.push_str(&stays(plan));
    for line in plan.ignored.iter().chain(&plan.found) {
        text.push_str(&format!("  {line}\n"));
    }
    text.push_str(&format!("  {word}: {folder}/{CONFIG}\n"));
    let lines = change.config.lines();
    text.extend(lines.map(|line| format!("    {line}").trim_end().to_owned() + "\n"));
    for (name, _) in &policy.files {
        text.push_str(&format!("  {word}: {folder}/{name}\n"));
    }
    text.push_str(&format!(
        "  first rules: {}; {} allowed, {} asked about\n",
        counted(policy.tools, "tool"),
        policy.permitted,
        policy.tools - policy.permitted
    ));
    let word = if written { "changed" } else { "would change" };
    text.push_str(&format!("  {word}: {}\n", plan.file.path.display()));
    text.extend(plan.changes.iter().map(|line| format!("    {line}\n")));
    text
}

fn heading(plan: &HostPlan) -> String {
    let (title, path) = (plan.file.titles(), plan.file.path.display());
    let moved = counted(plan.moved.len(), "server");
    format!("{title}, {path}: {moved} to move\n")
}

fn stays(plan: &HostPlan) -> String {
    let lines = plan.stays.iter();
    lines
        .map(|(name, why)| format!("  `{name}` stays: {why}\n"))
        .collect()
}

pub(super) fn json(findings: &Findings, written: bool) -> Value {
    let stays = |plan: &HostPlan| -> Vec<Value> {
        let stays = plan.stays.iter();
        stays
            .map(|(name, why)| json!({"server": name, "why": why}))
            .collect()
    };
    let changes = findings.changes.iter().map(|change| {
        let plan = &change.plan;
        let moved = plan.moved.iter().map(|(_, name)| name);
        json!({
            "host": plan.file.kind.id(),
            "file": plan.file.path,
            "moved": moved.collect::<Vec<_>>(),
            "stays": stays(plan),
            "ignored": plan.ignored,
            "found": plan.found,
            "folder": plan.file.folder,
            "config": change.config,
            "tools": change.policy.tools,
            "permitted": change.policy.permitted,
            "changes": plan.changes,
        })
    });
    let unchanged = findings.unchanged.iter().map(
        |plan| json!({"host": plan.file.kind.id(), "file": plan.file.path, "stays": stays(plan)}),
    );
    let unreadable = findings.unreadable.iter();
    let unreadable = unreadable.map(|(path, why)| json!({"file": path, "why": why}));
    json!({
        "written": written,
        "hosts": changes.collect::<Vec<_>>(),
        "unchanged": unchanged.collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
    })
}

pub(super) fn undone(undone: &[Undone]) -> String {
    if undone.is_empty() {
        return "there is nothing to take back\n".to_owned();
    }
    let line = |it: &Undone| match it {
        Undone::Restored(file) => format!("restored {}\n", file.display()),
        Undone::Removed(file) => format!("removed {}\n", file.display()),
        Undone::WithoutEntry { file, copy } => format!(
            "left {} as it is: airlock's entry is no longer in it; its old content is in {}\n",
            file.display(),
            copy.display()
        ),
        Undone::StillNamed(file) => format!(
            "kept {}: a file that was kept names it; remove airlock's entry there, then run `airlock init --undo` again\n",
            file.display()
        ),
        Undone::Kept { file, copy } => {
            let copy = copy.as_ref();
            let copy = copy.map(|it| format!("; its old content is in {}", it.display()));
            format!(
                "kept {}: it was changed after `airlock init --write`{}\n",
                file.display(),
                copy.unwrap_or_default()
            )
        }
    };
    undone.iter().map(line).collect()
}

pub(super) fn undone_json(undone: &[Undone]) -> Value {
    let (mut restored, mut removed, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = Vec::new();
    for it in undone {
        match it {
            Undone::WithoutEntry { file, .. } => left.push(file),
            Undone::Restored(file) => restored.push(file),
            Undone::Removed(file) => removed.push(file),
            Undone::Kept { file, .. } | Undone::StillNamed(file) => kept.push(file),
        }
    }
    json!({"restored": restored, "removed": removed, "kept": kept, "left": left})
}
