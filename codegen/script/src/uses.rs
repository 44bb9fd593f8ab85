//! Lists the members of globals and the plain names that a script uses: what it may call, known
//! before the run. Names that the script itself declares are omitted.

use std::collections::HashSet;

use codegen_shared::uses::Uses;
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrayExpressionElement, BindingIdentifier, CallExpression, ComputedMemberExpression,
    Expression, IdentifierReference, ObjectPropertyKind, StaticMemberExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;

/// Returns the uses in a script; none if the script does not parse.
pub(crate) fn uses_in(script: &str) -> Uses {
    let allocator = Allocator::default();
    let options = ParseOptions {
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    let kind = SourceType::ts().with_module(true);
    let parsed = Parser::new(&allocator, script, kind)
        .with_options(options)
        .parse();
    let mut seen = UseCounts::default();
    seen.visit_program(&parsed.program);
    let UseCounts {
        mut uses,
        declared,
        mentions,
        plain,
    } = seen;
    uses.described.others = mentions > plain;
    if declared.contains(OWN) {
        uses.described = codegen_shared::uses::DescribeUse::default();
    }
    uses.members
        .retain(|(object, _)| !declared.contains(object));
    uses.names.retain(|name| !declared.contains(name));
    uses
}

#[derive(Default)]
struct UseCounts {
    uses: Uses,
    declared: HashSet<String>,
    /// Number of uses of the names that can describe tools.
    mentions: usize,
    /// Number of those uses that describe no tool, or that write out all tool names.
    plain: usize,
}

/// The global of airlock's own tools, including the one that returns descriptions.
const OWN: &str = "airlock";
const DESCRIBE: &str = "describe";
const DESCRIBE_FLAT: &str = "airlock_describe";

impl UseCounts {
    fn member(&mut self, object: &Expression<'_>, member: &str) {
        if let Expression::Identifier(object) = object {
            // Any other member cannot be `describe`.
            if object.name == OWN && member != DESCRIBE {
                self.plain += 1;
            }
            let pair = (object.name.to_string(), member.to_owned());
            self.uses.members.insert(pair);
        }
    }
}

impl<'a> Visit<'a> for UseCounts {
    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        self.member(&it.object, it.property.name.as_str());
        walk::walk_static_member_expression(self, it);
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        if let Expression::StringLiteral(text) = &it.expression {
            self.member(&it.object, text.value.as_str());
        }
        walk::walk_computed_member_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if is_describe(&it.callee)
            && let Some(names) = names_in(it)
        {
            self.plain += 1;
            self.uses.described.names.extend(names);
        }
        walk::walk_call_expression(self, it);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if it.name == OWN || it.name == DESCRIBE_FLAT {
            self.mentions += 1;
        }
        self.uses.names.insert(it.name.to_string());
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.declared.insert(it.name.to_string());
    }
}

fn is_describe(callee: &Expression<'_>) -> bool {
    match callee {
        Expression::Identifier(name) => name.name == DESCRIBE_FLAT,
        Expression::StaticMemberExpression(it) => {
            it.property.name == DESCRIBE
                && matches!(&it.object, Expression::Identifier(object) if object.name == OWN)
        }
        _ => false,
    }
}

/// Returns the tools of `describe("server.tool")` or `describe({tools: ["server.tool"]})`; `None` if one of them is not written
/// out.
fn names_in(call: &CallExpression<'_>) -> Option<Vec<String>> {
    let [only] = call.arguments.as_slice() else {
        return None;
    };
    let only = only.as_expression()?;
    let Expression::ObjectExpression(object) = only else {
        return names_of(only);
    };
    let mut names = Vec::new();
    for property in &object.properties {
        let ObjectPropertyKind::ObjectProperty(property) = property else {
            return None;
        };
        if property.key.static_name()? != "tools" {
            continue;
        }
        names.extend(names_of(&property.value)?);
    }
    Some(names)
}

/// Returns the names in a text or in an array of texts.
fn names_of(value: &Expression<'_>) -> Option<Vec<String>> {
    match value {
        Expression::StringLiteral(text) => {
            let names = text.value.split(',').map(|it| it.trim().to_owned());
            Some(names.collect())
        }
        Expression::ArrayExpression(array) => {
            let name = |element: &ArrayExpressionElement<'_>| match element.as_expression()? {
                Expression::StringLiteral(text) => Some(text.value.to_string()),
                _ => None,
            };
            array.elements.iter().map(name).collect()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, members: &[&str], names: &[&str]) {
        let uses = uses_in(script);
        let mut found: Vec<_> = uses
            .members
            .iter()
            .map(|(object, member)| format!("{object}.{member}"))
            .collect();
        found.sort();
        assert_eq!(found, members, "{script}");
        for name in names {
            assert!(uses.names.contains(*name), "{script}: {name}");
        }
    }

    #[test]
    fn uses_are_found_before_run() {
        check(
            "const a = await fs.read({path: 1}); return git['log-all']({})",
            &["fs.read", "git.log-all"],
            &["fs", "git"],
        );
        check("return await fs_read({})", &[], &["fs_read"]);
        check("// fs.write\nreturn 'fs.write'", &[], &[]);
        check(
            "export default async (input: {a: number}) => fs.read(input)",
            &["fs.read"],
            &[],
        );
        check("const fs = {read() {}}; fs.read()", &[], &[]);
        check(
            "for (const x of await fs.list()) { if (x) { fs.read(x) } }",
            &["fs.list", "fs.read"],
            &[],
        );
    }

    #[test]
    fn described_tools_are_found() {
        for (script, names, others) in [
            (
                "await airlock.describe({tools: ['fs.read', \"fs.write\"]}); fs.read({})",
                &["fs.read", "fs.write"] as &[&str],
                false,
            ),
            (
                "airlock_describe({tools: 'a.b, c.d'})",
                &["a.b", "c.d"],
                false,
            ),
            (
                "airlock.describe('a.b'); airlock.describe(['c.d'])",
                &["a.b", "c.d"],
                false,
            ),
            ("airlock.describe(found[0].name)", &[], true),
            ("airlock.search({query: 'x'}); fs.read({})", &[], false),
            ("airlock.describe({tools: found})", &[], true),
            ("airlock.describe({...found})", &[], true),
            ("airlock.describe({tools: [a, 'fs.read']})", &[], true),
            (
                "airlock.describe({tools: ['a.b']}); airlock.describe({tools})",
                &["a.b"],
                true,
            ),
            (
                "const {describe} = airlock; describe({tools: 'a.b'})",
                &[],
                true,
            ),
            (
                "const d = airlock['describe']; d({tools: 'a.b'})",
                &[],
                true,
            ),
            (
                "const airlock = {describe() {}}; airlock.describe(x)",
                &[],
                false,
            ),
        ] {
            let described = uses_in(script).described;
            let mut found: Vec<_> = described.names.iter().map(String::as_str).collect();
            found.sort_unstable();
            assert_eq!(
                (found.as_slice(), described.others),
                (names, others),
                "{script}"
            );
        }
    }

    #[test]
    fn uses_of_invalid_script_are_empty() {
        for script in ["", "((((", "const", "\u{0}"] {
            assert_eq!(uses_in(script), Uses::default(), "{script}");
        }
    }
}
