//! Finds where a script returns its value, for a value that cannot be returned to the host.

use oxc_ast::ast::{ArrowFunctionExpression, Function, ReturnStatement, Statement};
use oxc_ast_visit::Visit;
use oxc_span::GetSpan;
use oxc_syntax::scope::ScopeFlags;

use crate::check::parse::ParsedScript;
use codegen_shared::finding::Form;
use codegen_shared::lines::Lines;

/// Returns the line and column of the only value that the script returns. Returns `None` if there
/// are several, because it is not known which one was returned.
pub(super) fn place(parsed: &ParsedScript<'_>, form: Form) -> Option<(u32, u32)> {
    let at = match form {
        Form::Body => {
            let mut returns = Returns::default();
            returns.visit_program(&parsed.program);
            match returns.values.as_slice() {
                [one] => *one,
                _ => return None,
            }
        }
        Form::Expression => match parsed.program.body.as_slice() {
            [Statement::ExpressionStatement(it)] => {
                it.expression.get_inner_expression().span().start
            }
            _ => return None,
        },
        Form::Function | Form::Module => return None,
    };
    Some(Lines::new(parsed.text, parsed.shift).place(at))
}

/// Collects the start offsets of the values that the script itself returns.
#[derive(Default)]
struct Returns {
    values: Vec<u32>,
}

impl<'a> Visit<'a> for Returns {
    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        if let Some(value) = &it.argument {
            self.values.push(value.span().start);
        }
    }

    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}
}
