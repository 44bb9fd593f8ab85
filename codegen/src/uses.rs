//! Which members of globals, and which bare names, a script speaks of: what it
//! may call, seen before it runs. A name that the script declares itself is its own.

use std::collections::HashSet;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    BindingIdentifier, ComputedMemberExpression, Expression, IdentifierReference,
    StaticMemberExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;

/// What is spoken of. Calls that a script hides from the eye are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// `object.member`, also written `object["member"]`.
    pub members: HashSet<(String, String)>,
    pub names: HashSet<String>,
}

/// Nothing for a text that cannot be read as a script at all.
#[must_use]
pub fn of(script: &str) -> Uses {
    // Deep nesting is the guest's to refuse; here it would be our own stack.
    const NESTING_MAX: usize = 200;
    if nesting(script) > NESTING_MAX {
        return Uses::default();
    }
    let allocator = Allocator::default();
    let options = ParseOptions {
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    let kind = SourceType::ts().with_module(true);
    let parsed = Parser::new(&allocator, script, kind)
        .with_options(options)
        .parse();
    let mut seen = Seen::default();
    seen.visit_program(&parsed.program);
    let Seen { mut uses, declared } = seen;
    uses.members
        .retain(|(object, _)| !declared.contains(object));
    uses.names.retain(|name| !declared.contains(name));
    uses
}

/// An upper bound: brackets in texts and comments count too.
fn nesting(script: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    for byte in script.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[derive(Default)]
struct Seen {
    uses: Uses,
    declared: HashSet<String>,
}

impl Seen {
    fn member(&mut self, object: &Expression<'_>, member: &str) {
        if let Expression::Identifier(object) = object {
            let pair = (object.name.to_string(), member.to_owned());
            self.uses.members.insert(pair);
        }
    }
}

impl<'a> Visit<'a> for Seen {
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

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.uses.names.insert(it.name.to_string());
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.declared.insert(it.name.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, members: &[&str], names: &[&str]) {
        let uses = of(script);
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
    fn what_a_script_speaks_of_is_seen_before_it_runs() {
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
    fn a_text_that_is_no_script_or_too_deep_speaks_of_nothing() {
        for script in ["", "((((", "const", "\u{0}"] {
            let _ = of(script);
        }
        let deep = format!("{}fs.read(){}", "(".repeat(10_000), ")".repeat(10_000));
        assert_eq!(of(&deep), Uses::default());
    }
}
