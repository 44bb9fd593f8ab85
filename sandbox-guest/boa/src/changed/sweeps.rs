//! Where a script makes what may be large in instructions: `{ ...object }`, `const row = []`. Whether the heap is full of what nobody has any more is asked there, since
//! nothing of ours is called by those.
//!
//! ```text
//! { ...object }       becomes   { ...airlock_sweep()?0:object }
//! const row = []      becomes   const row = airlock_sweep()?0:[]
//! ```

use std::ops::ControlFlow;

use boa_ast::declaration::{Binding, Variable};
use boa_ast::expression::New;
use boa_ast::expression::literal::{ObjectLiteral, PropertyDefinition};
use boa_ast::pattern::{ObjectPatternElement, Pattern};
use boa_ast::visitor::{VisitWith, Visitor};
use boa_ast::{Expression, function::FunctionBody};
use boa_engine::{Context, JsResult, JsValue};

use super::Edit;
use super::spans::Text;
use crate::room;

/// Whether a script may make anything like that.
pub(super) fn is_likely(script: &str) -> bool {
    script.contains("...")
        || script.contains("new Array")
        || ["for", "while"].iter().any(|word| script.contains(word)) && script.contains('[')
}

/// `airlock_sweep()`
pub(super) fn sweep(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    room::sweep_when_full();
    Ok(JsValue::undefined())
}

/// What asks, before an expression that may stand on the right of `=`.
pub(super) fn asking(name: &str) -> String {
    format!("{name}()?0:")
}

pub(super) fn edits(script: &str, name: &str, body: &FunctionBody) -> Vec<Edit> {
    let mut finder = Finder {
        text: Text::new(script),
        asking: asking(name),
        edits: Vec::new(),
    };
    let _ = finder.visit_function_body(body);
    finder.edits
}

struct Finder<'a> {
    text: Text<'a>,
    asking: String,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    /// Asks before the expression, which stands behind this.
    fn ask(&mut self, expression: &Expression, behind: &str) {
        let start = self.text.start(expression);
        let before = start.and_then(|start| self.text.slice(0, start));
        if let Some(start) = start
            && before.is_some_and(|before| before.trim_end().ends_with(behind))
        {
            self.edits.push(Edit {
                start,
                end: start,
                text: self.asking.clone(),
                place: Some(start),
            });
        }
    }
}

fn is_array(expression: &Expression) -> bool {
    matches!(expression, Expression::ArrayLiteral(_))
}

fn has_rest(pattern: &Pattern) -> bool {
    let Pattern::Object(pattern) = pattern else {
        return false;
    };
    let last = pattern.bindings().last();
    matches!(last, Some(ObjectPatternElement::RestProperty { .. }))
}

impl<'ast> Visitor<'ast> for Finder<'_> {
    type BreakTy = ();

    fn visit_object_literal(&mut self, node: &'ast ObjectLiteral) -> ControlFlow<()> {
        let spread = node.properties().iter().find_map(|member| match member {
            PropertyDefinition::SpreadObject(spread) => Some(spread),
            _ => None,
        });
        if let Some(spread) = spread {
            self.ask(spread, "...");
        }
        node.visit_with(self)
    }

    fn visit_new(&mut self, node: &'ast New) -> ControlFlow<()> {
        if let [length] = node.arguments()
            && !matches!(length, Expression::Spread(_))
        {
            self.ask(length, "Array(");
        }
        node.visit_with(self)
    }

    fn visit_variable(&mut self, node: &'ast Variable) -> ControlFlow<()> {
        if let Some(value) = node.init() {
            let may_be_large = match node.binding() {
                Binding::Identifier(_) => is_array(value),
                Binding::Pattern(pattern) => has_rest(pattern),
            };
            if may_be_large {
                self.ask(value, "=");
            }
        }
        node.visit_with(self)
    }
}
