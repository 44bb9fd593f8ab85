//! Resolves names that the script does not declare: servers, flat names of tools, globals of every
//! script, and mistakes.

use oxc_ast::AstKind;
use oxc_semantic::NodeId;
use oxc_span::GetSpan;

use super::context::CheckContext;
use crate::names::is_known_global;
use codegen_shared::finding::{FindingCode, Severity};
use codegen_shared::message::AbsentServer;

/// Globals that are not in the list of [`is_known_global`], which names the globals that servers
/// cannot have.
const MORE_GLOBALS: [&str; 21] = [
    "AsyncDisposableStack",
    "DisposableStack",
    "SuppressedError",
    "TypedArray",
    "arguments",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "eval",
    "globalThis",
    "input",
    "isFinite",
    "isNaN",
    "parseFloat",
    "parseInt",
    "queueMicrotask",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "undefined",
    "unescape",
];

/// The global with airlock's own tools.
const OWN: &str = "airlock";

/// Globals of other environments, and what to use instead.
const ABSENT: [(&str, &str); 24] = [
    ("fetch", "There is no network: call a tool."),
    ("XMLHttpRequest", "There is no network: call a tool."),
    ("WebSocket", "There is no network: call a tool."),
    ("axios", "There is no network: call a tool."),
    ("require", "There are no modules: servers are globals."),
    ("module", "Return the value, or write `export default`."),
    ("exports", "Return the value, or write `export default`."),
    ("process", "There is no process: values come in as `input`."),
    ("Deno", "There is no process: values come in as `input`."),
    ("Bun", "There is no process: values come in as `input`."),
    ("Buffer", "Use `TextEncoder`, `atob` and `btoa`."),
    ("fs", "There are no files: call a tool."),
    ("path", "There are no files: call a tool."),
    ("os", "There is no OS access: call a tool."),
    (
        "window",
        "There is no DOM here: `globalThis` holds the globals.",
    ),
    ("document", "There is no DOM."),
    ("self", "`globalThis` holds the globals."),
    ("global", "`globalThis` holds the globals."),
    ("localStorage", "Nothing is kept between runs."),
    ("alert", "Use `console.log`, or return the value."),
    ("print", "Use `console.log`."),
    (
        "setImmediate",
        "Use `setTimeout(f, 0)` or `queueMicrotask(f)`.",
    ),
    ("tools", "Servers are globals: `server.tool({ … })`."),
    ("mcp", "Servers are globals: `server.tool({ … })`."),
];

/// Whether every script has a global with this name.
#[must_use]
pub(crate) fn is_global(name: &str) -> bool {
    let is_there = is_known_global(name) || MORE_GLOBALS.contains(&name);
    let is_absent = instead_of_absent(name).is_some();
    let is_off = ["SharedArrayBuffer", "Atomics", "ShadowRealm", "WebAssembly"].contains(&name);
    is_there && !is_absent && !is_off
}

impl CheckContext<'_, '_, '_> {
    /// Checks the whole script.
    pub(super) fn read(&mut self) {
        let unresolved = self.scoping().root_unresolved_references();
        let mut names: Vec<(&str, Vec<NodeId>)> = Vec::new();
        for (name, references) in unresolved {
            let of = |id: &_| self.scoping().get_reference(*id);
            let values = references.iter().map(of).filter(|it| it.is_value());
            names.push((name.as_str(), values.map(|it| it.node_id()).collect()));
        }
        names.sort_unstable();
        for (name, nodes) in names {
            if let Some(server) = self.surface.server(name) {
                nodes.iter().for_each(|node| self.server(*node, server));
            } else if let Some(tool) = self.surface.global_tool(name) {
                nodes.iter().for_each(|node| self.tool(*node, tool));
            } else if !is_global(name) {
                self.unknown(name, &nodes);
            } else if self.surface.lacks(name) {
                self.lacking(name, &nodes);
            } else {
                self.lacking_members(name, &nodes);
            }
        }
        self.time_zones();
    }

    /// Warns about a global that JavaScript has and this engine lacks. A script that tests the
    /// global with `typeof` gets no warning.
    fn lacking(&mut self, name: &str, nodes: &[NodeId]) {
        if nodes.iter().any(|node| self.is_asked_for(*node)) {
            return;
        }
        for node in nodes {
            let at = self.kind(*node).span().start;
            let message = format!("the engine that runs this script has no `{name}`");
            let suggestion =
                "Avoid it, or choose another engine: `airlock engines` lists what each lacks.";
            let suggestion = Some(suggestion.to_owned());
            self.warning(FindingCode::UnknownName, at, message, suggestion);
        }
    }

    /// Warns about a member of a global that JavaScript has and this engine lacks. A script that
    /// tests the member with `typeof` gets no warning.
    fn lacking_members(&mut self, name: &str, nodes: &[NodeId]) {
        let mut members: Vec<(String, Vec<NodeId>)> = Vec::new();
        for node in nodes {
            let place = self.parent(*node);
            let AstKind::StaticMemberExpression(member) = self.kind(place) else {
                continue;
            };
            let whole = format!("{name}.{}", member.property.name);
            if !self.surface.lacks(&whole) {
                continue;
            }
            match members.iter_mut().find(|(known, _)| *known == whole) {
                Some((_, places)) => places.push(place),
                None => members.push((whole, vec![place])),
            }
        }
        for (member, places) in members {
            self.lacking(&member, &places);
        }
    }

    fn unknown(&mut self, name: &str, nodes: &[NodeId]) {
        // A script that tests a name with `typeof` expects that it may be missing.
        if nodes.iter().any(|node| self.is_asked_for(*node)) {
            return;
        }
        if !self.findings.wants(Severity::Error) {
            return self.findings.count(nodes.len());
        }
        if let Some(absent) = self.surface.absent(name) {
            return self.absent(absent, nodes);
        }
        let (local, suggestion) = self.instead_of(name);
        let has_servers = self.servers().next().is_some();
        for (number, node) in nodes.iter().enumerate() {
            if !self.findings.wants(Severity::Error) {
                return self.findings.count(nodes.len() - number);
            }
            let at = self.kind(*node).span().start;
            // Without servers, a name such as `fs` is more likely a missing server than a module.
            let is_server = instead_of_absent(name).is_none() || !has_servers;
            if !local && is_server && self.is_called_on(*node) {
                let message = format!("there is no server `{name}`");
                let suggestion = match has_servers {
                    true => suggestion.clone().or_else(|| self.the_servers()),
                    false => self.the_servers(),
                };
                self.error(*node, FindingCode::UnknownServer, at, message, suggestion);
                continue;
            }
            let message = format!("there is no `{name}` here");
            let declare = || format!("Declare it: `let {name} = …`.");
            let suggestion = suggestion
                .clone()
                .or_else(|| self.is_assigned(*node).then(declare));
            if self.is_tried(*node) {
                self.warning(FindingCode::UnknownName, at, message, suggestion);
            } else {
                self.error(*node, FindingCode::UnknownName, at, message, suggestion);
            }
        }
    }

    /// Reports uses of a server that is configured but not available.
    fn absent(&mut self, absent: &AbsentServer<'_>, nodes: &[NodeId]) {
        for (number, node) in nodes.iter().enumerate() {
            if !self.findings.wants(Severity::Error) {
                return self.findings.count(nodes.len() - number);
            }
            let at = self.kind(*node).span().start;
            let message = format!("the server `{}` {}", absent.global, absent.why);
            let next = Some(absent.next.to_owned());
            self.error(*node, FindingCode::UnknownServer, at, message, next);
        }
    }

    /// Whether a node is used like a server: `name.something(…)`.
    fn is_called_on(&self, node: NodeId) -> bool {
        let member = self.parent(node);
        let is_member = matches!(self.kind(member), AstKind::StaticMemberExpression(_));
        let is_called = matches!(self.kind(self.parent(member)), AstKind::CallExpression(it)
            if it.callee.span() == self.kind(member).span());
        is_member && is_called
    }

    fn is_assigned(&self, node: NodeId) -> bool {
        let own = self.kind(node).span();
        matches!(self.kind(self.parent(node)), AstKind::AssignmentExpression(it)
            if it.left.span() == own)
    }

    fn is_asked_for(&self, node: NodeId) -> bool {
        matches!(self.kind(self.parent(node)), AstKind::UnaryExpression(it)
            if it.operator == oxc_syntax::operator::UnaryOperator::Typeof)
    }

    /// Returns a suggestion for an unknown name, and whether the suggested name is declared in the
    /// script.
    fn instead_of(&self, name: &str) -> (bool, Option<String>) {
        if let Some(instead) = instead_of_absent(name) {
            return (false, Some(instead.to_owned()));
        }
        let tools = self.surface.global_tools();
        let own = self.scoping().symbol_names();
        let given = self
            .surface
            .globals()
            .chain(tools.iter().map(String::as_str));
        let all = own.chain(given).chain(MORE_GLOBALS);
        let others = all.filter(|it| *it != name);
        if let Some(meant) = self.findings.patience.closest(name, others) {
            let is_own = self.scoping().symbol_names().any(|it| it == meant);
            return (is_own, Some(format!("Did you mean `{meant}`?")));
        }
        let elsewhere = self.surface.elsewhere(name);
        let meant = elsewhere.map(|(server, tool)| format!("Did you mean `{server}.{tool}`?"));
        (false, meant)
    }

    /// Returns the globals of servers, without airlock's own.
    fn servers(&self) -> impl Iterator<Item = &str> {
        self.surface.globals().filter(|it| *it != OWN)
    }

    fn the_servers(&self) -> Option<String> {
        let servers: Vec<_> = self.servers().map(|it| format!("`{it}`")).collect();
        Some(match servers.as_slice() {
            [] => "No server is connected.".to_owned(),
            [one] => format!("The server is {one}."),
            servers => format!("The servers are {}.", super::expect::listed(servers)),
        })
    }
}

fn instead_of_absent(name: &str) -> Option<&'static str> {
    let mut absent = ABSENT.iter();
    absent.find_map(|(absent, instead)| (*absent == name).then_some(*instead))
}
