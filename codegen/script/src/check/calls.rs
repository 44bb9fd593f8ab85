//! Finds servers, their tools, and calls: from the name of a server to every call of one of its
//! tools.

use oxc_ast::AstKind;
use oxc_ast::ast::{
    Argument, BindingPattern, CallExpression, Expression, ObjectPattern, VariableDeclarator,
};
use oxc_semantic::NodeId;
use oxc_span::GetSpan;

use super::context::CheckContext;
use super::surface::Tool;
use super::values::Arguments;
use codegen_shared::finding::{FindingCode, Severity};
use codegen_shared::identifiers::ASKED_BY_THE_LANGUAGE;
use codegen_shared::message::ServerNames;

/// Maximum number of tools that a suggestion lists.
const NAMES_MAX: usize = 12;

impl<'a, 's> CheckContext<'a, 's, '_> {
    /// Checks how the script uses the expression `node`, whose value is a server.
    pub(super) fn server(&mut self, node: NodeId, server: &'s ServerNames<'s>) {
        let node = self.outermost(node);
        let parent = self.parent(node);
        match self.kind(parent) {
            AstKind::StaticMemberExpression(it) if it.object.span() == self.kind(node).span() => {
                self.member(
                    parent,
                    server,
                    it.property.name.as_str(),
                    it.property.span.start,
                );
            }
            AstKind::ComputedMemberExpression(it) if it.object.span() == self.kind(node).span() => {
                if let Some(name) = self.text_of(&it.expression) {
                    self.member(parent, server, name, it.expression.span().start);
                }
            }
            AstKind::VariableDeclarator(it) => self.server_declared(it, server),
            AstKind::CallExpression(it) if it.callee.span() == self.kind(node).span() => {
                let message = format!("`{}` is a server and cannot be called", server.global);
                let tool = self.surface.named(server).next();
                let suggestion = tool.map(|tool| {
                    format!(
                        "Call one of its tools, such as `{}.{}`.",
                        server.global, tool.member
                    )
                });
                let at = it.span.start;
                self.error(parent, FindingCode::UnknownTool, at, message, suggestion);
            }
            _ => {}
        }
    }

    fn server_declared(&mut self, it: &VariableDeclarator<'a>, server: &'s ServerNames<'s>) {
        if let Some((symbol, _)) = self.declared(it) {
            self.follow(symbol, |reading, node| reading.server(node, server));
        } else if let BindingPattern::ObjectPattern(pattern) = &it.id {
            self.server_taken_apart(pattern, server);
        }
    }

    /// Checks `const { tool, other: name } = server`.
    fn server_taken_apart(&mut self, pattern: &ObjectPattern<'a>, server: &'s ServerNames<'s>) {
        for property in &pattern.properties {
            let Some(name) = property.key.static_name() else {
                continue;
            };
            let at = property.key.span().start;
            let Some(tool) = self.find_tool(property.node_id.get(), server, &name, at) else {
                continue;
            };
            let bound = property.value.get_binding_identifier();
            let symbol = bound.and_then(|it| self.fixed(it.symbol_id.get()?));
            if let Some(symbol) = symbol {
                self.follow(symbol, |reading, node| reading.tool(node, tool));
            }
        }
    }

    fn member(&mut self, node: NodeId, server: &'s ServerNames<'s>, name: &str, at: u32) {
        if let Some(tool) = self.find_tool(node, server, name, at) {
            self.tool(node, tool);
        }
    }

    fn find_tool(
        &mut self,
        node: NodeId,
        server: &'s ServerNames<'s>,
        name: &str,
        at: u32,
    ) -> Option<Tool<'s>> {
        let found = self.surface.tool(server, name);
        if found.is_none() && !ASKED_BY_THE_LANGUAGE.contains(&name) {
            if !self.findings.wants(Severity::Error) {
                self.findings.count(1);
                return None;
            }
            let shown = crate::text::clip(&crate::text::neutralise(name), 80);
            let message = format!("`{}` has no tool `{shown}`", server.global);
            let in_two = self.in_two_words(node, server, name);
            let suggestion = in_two.or_else(|| self.instead_of_tool(server, name));
            self.error(node, FindingCode::UnknownTool, at, message, suggestion);
        }
        found
    }

    /// Suggests `tickets_create` for `demo.tickets.create`.
    fn in_two_words(
        &self,
        node: NodeId,
        server: &'s ServerNames<'s>,
        name: &str,
    ) -> Option<String> {
        let node = self.outermost(node);
        let AstKind::StaticMemberExpression(behind) = self.kind(self.parent(node)) else {
            return None;
        };
        let is_letter = |it: &char| it.is_alphanumeric();
        let plain = |it: &str| {
            it.chars()
                .filter(is_letter)
                .collect::<String>()
                .to_lowercase()
        };
        let whole = plain(&format!("{name}{}", behind.property.name));
        let mut named = self.surface.named(server);
        let found = named.find(|it| plain(it.member) == whole)?;
        Some(format!(
            "Did you mean `{}.{}`?",
            server.global, found.member
        ))
    }

    fn instead_of_tool(&self, server: &'s ServerNames<'s>, name: &str) -> Option<String> {
        let patience = &self.findings.patience;
        if let Some(member) = self.surface.closest_tool(server, name, patience) {
            return Some(format!("Did you mean `{member}`?"));
        }
        if let Some((other, member)) = self.surface.elsewhere(name) {
            return Some(format!("Did you mean `{other}.{member}`?"));
        }
        let mut named = self.surface.named(server);
        let names = named.by_ref().take(NAMES_MAX);
        let names: Vec<_> = names.map(|it| format!("`{}`", it.member)).collect();
        let more = match named.next() {
            Some(_) => " and more",
            None => "",
        };
        (!names.is_empty()).then(|| format!("Tools: {}{more}.", names.join(", ")))
    }

    /// Checks how the script uses the expression `node`, whose value is a tool.
    pub(super) fn tool(&mut self, node: NodeId, tool: Tool<'s>) {
        let node = self.outermost(node);
        let parent = self.parent(node);
        match self.kind(parent) {
            AstKind::CallExpression(it) if it.callee.span() == self.kind(node).span() => {
                self.call(parent, it, tool);
            }
            AstKind::VariableDeclarator(it) => {
                if let Some((symbol, _)) = self.declared(it) {
                    self.follow(symbol, |reading, node| reading.tool(node, tool));
                }
            }
            AstKind::ExpressionStatement(_) | AstKind::AwaitExpression(_) => {
                let at = self.kind(node).span().start;
                let message = format!("`{}` is a tool, and it is not called", tool.name());
                let suggestion = Some(format!("Write `await {}`.", tool.call_with(&[])));
                self.warning(FindingCode::NotCalled, at, message, suggestion);
            }
            AstKind::NewExpression(it) if it.callee.span() == self.kind(node).span() => {
                let message = format!("`{}` is a tool, not a class", tool.name());
                let suggestion = Some("Remove `new`.".to_owned());
                self.error(
                    parent,
                    FindingCode::UnknownTool,
                    it.span.start,
                    message,
                    suggestion,
                );
            }
            _ => {}
        }
    }

    fn call(&mut self, node: NodeId, call: &'a CallExpression<'a>, tool: Tool<'s>) {
        if let Some(why) = tool.names.deprecated.filter(|_| tool.is_told) {
            let colon = if why.is_empty() { "" } else { ": " };
            let message = format!("`{}` is deprecated{colon}{why}", tool.name());
            self.warning(FindingCode::Deprecated, call.span.start, message, None);
        }
        let shape = self.shape(tool);
        if tool.is_told && self.findings.wants(Severity::Error) {
            self.arguments(node, call, tool);
        }
        self.promise(node, Some((tool, &shape)));
    }

    fn arguments(&mut self, node: NodeId, call: &'a CallExpression<'a>, tool: Tool<'s>) {
        let has_spread = call.arguments.iter().any(Argument::is_spread);
        match call.arguments.as_slice() {
            _ if has_spread => {}
            [] => Arguments::new(self, node, tool).none(call.span.end.saturating_sub(1)),
            [only] => {
                if let Some(only) = only.as_expression() {
                    Arguments::new(self, node, tool).one(only);
                }
            }
            several if !tool.names.order.is_empty() => {
                let several = several.iter().filter_map(Argument::as_expression);
                Arguments::new(self, node, tool).in_order(&several.collect::<Vec<_>>());
            }
            [_, second, ..] => {
                let message = format!("`{}` takes one object, not several values", tool.name());
                let suggestion = self.as_one_object(call, tool);
                let at = second.span().start;
                self.error(node, FindingCode::NotOneObject, at, message, suggestion);
            }
        }
    }

    fn as_one_object(&mut self, call: &CallExpression<'a>, tool: Tool<'s>) -> Option<String> {
        let shape = self.shape(tool);
        let names = super::expect::names_of(&shape, &shape.input);
        // The tool gets the first object; further arguments are the mistake.
        if let Some(Expression::ObjectExpression(_)) =
            call.arguments.first().and_then(Argument::as_expression)
        {
            return Some("Pass only the object.".to_owned());
        }
        Some(format!("Write `{}`.", tool.call_with(&names)))
    }
}
