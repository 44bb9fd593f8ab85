//! Checks calls in functions that a script passes to `forEach` and `map`. `forEach` drops what its
//! function returns, and `map` collects promises that something has to wait for.

use oxc_ast::AstKind;
use oxc_ast::ast::{BindingPattern, CallExpression, Expression, FormalParameters};
use oxc_semantic::NodeId;
use oxc_span::GetSpan;

use super::awaiting::{OF_A_PROMISE, OfCall, subject};
use super::context::CheckContext;
use codegen_shared::finding::{FindingCode, Form};

/// Methods of arrays that pass the elements to a function.
const PASSES_ELEMENTS: [&str; 9] = [
    "every",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "flatMap",
    "map",
    "some",
    "forEach",
];
/// Functions that turn an array into text.
const TO_TEXT: [&str; 2] = ["JSON.stringify", "String"];

/// A call in a callback: where it is, and whose promise it returns.
#[derive(Clone, Copy)]
struct Call<'t, 's> {
    at: u32,
    of: OfCall<'t, 's>,
}

impl<'a, 's> CheckContext<'a, 's, '_> {
    /// Checks a promise in the function around `node`. The function returns the promise, or awaits
    /// it and therefore returns another promise. `at` is the place of the call.
    pub(super) fn promise_in_function(&mut self, node: NodeId, at: u32, of: OfCall<'_, 's>) {
        let Some(function) = self.function_around(node) else {
            return;
        };
        let function = self.outermost(function);
        let call = self.parent(function);
        let AstKind::CallExpression(it) = self.kind(call) else {
            return;
        };
        let own = self.kind(function).span();
        if it.arguments.first().map(GetSpan::span) != Some(own) {
            return;
        }
        match self.method_of_list(it) {
            Some("forEach") if !self.is_in_new_promise(call) => {
                let what = "which does not wait for it";
                let fix = "Use `for (const … of …)` and `await` the call.";
                self.lost("forEach", what, Call { at, of }, fix);
            }
            Some("map") => self.promises(call, Call { at, of }),
            _ => {}
        }
    }

    /// Checks how the script uses an array of promises, which the expression `node` evaluates to.
    fn promises(&mut self, node: NodeId, call: Call<'_, 's>) {
        let node = self.outermost(node);
        let own = self.kind(node).span();
        let parent = self.parent(node);
        match self.kind(parent) {
            // `await` of an array does not wait for its elements.
            AstKind::AwaitExpression(_) => self.promises(parent, call),
            AstKind::ExpressionStatement(_) => self.never_awaited(call),
            AstKind::ReturnStatement(_) | AstKind::ArrowFunctionExpression(_)
                if self.is_value_of_script(parent) =>
            {
                self.never_awaited(call);
            }
            AstKind::VariableDeclarator(it) => {
                let Some((symbol, _)) = self.declared(it) else {
                    return;
                };
                match self.uses(symbol).as_slice() {
                    [] => self.never_awaited(call),
                    // If the script uses the array several times, one of the uses may wait for the
                    // promises.
                    [only] if !self.is_statement(*only) => self.promises(*only, call),
                    _ => {}
                }
            }
            AstKind::StaticMemberExpression(it) if it.object.span() == own => {
                let name = it.property.name.as_str();
                if name == "join" || self.reads_elements(parent, name) {
                    let what = format!("and `{name}` gets promises, not results");
                    self.lost("map", &what, call, ALL);
                }
            }
            AstKind::CallExpression(it) if it.callee.span() != own => {
                let name = self.callee_name(&it.callee).unwrap_or_default();
                if TO_TEXT.contains(&name.as_str()) {
                    let what = format!("and `{name}` gets promises, not results");
                    self.lost("map", &what, call, ALL);
                }
            }
            _ => {}
        }
    }

    fn never_awaited(&mut self, call: Call<'_, 's>) {
        self.lost("map", "and nothing waits for its promises", call, ALL);
    }

    fn lost(&mut self, method: &str, what: &str, call: Call<'_, 's>, fix: &str) {
        let message = format!(
            "{} runs in `{method}`, {what}: calls that are open when the script ends are cancelled",
            subject(call.of)
        );
        self.warning(FindingCode::NotAwaited, call.at, message, Some(fix.into()));
    }

    /// Whether a method of an array of promises passes them to a function that reads their members.
    fn reads_elements(&self, member: NodeId, name: &str) -> bool {
        let member = self.outermost(member);
        let AstKind::CallExpression(call) = self.kind(self.parent(member)) else {
            return false;
        };
        let is_called = call.callee.span() == self.kind(member).span();
        if !is_called || !PASSES_ELEMENTS.contains(&name) {
            return false;
        }
        let given = call.arguments.first().and_then(|it| it.as_expression());
        let Some(first) = given.and_then(parameters).and_then(|it| it.items.first()) else {
            return false;
        };
        let symbol = match &first.pattern {
            BindingPattern::ObjectPattern(_) => return true,
            BindingPattern::BindingIdentifier(name) => name.symbol_id.get(),
            _ => None,
        };
        let uses = symbol.map(|symbol| self.uses(symbol)).unwrap_or_default();
        uses.into_iter().any(|node| {
            let AstKind::StaticMemberExpression(it) = self.kind(self.parent(node)) else {
                return false;
            };
            !OF_A_PROMISE.contains(&it.property.name.as_str())
        })
    }

    /// Returns the name of the method, unless the script defines the object that it is called on.
    fn method_of_list(&self, call: &'a CallExpression<'a>) -> Option<&'a str> {
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return None;
        };
        let object = member.object.get_inner_expression();
        let is_server = |name| self.surface.server(name).is_some();
        let value = self.symbol_of(object).and_then(|it| self.value_of(it));
        let is_own = match value.unwrap_or(object).get_inner_expression() {
            Expression::ObjectExpression(_)
            | Expression::ClassExpression(_)
            | Expression::ThisExpression(_)
            | Expression::Super(_) => true,
            Expression::NewExpression(it) => {
                let name = self.global_of(&it.callee);
                !name.is_some_and(|name| ["Array", "Map", "Set"].contains(&name))
            }
            _ => self.global_of(object).is_some_and(is_server),
        };
        (!is_own).then_some(member.property.name.as_str())
    }

    fn function_around(&self, node: NodeId) -> Option<NodeId> {
        for it in self.semantic.nodes().ancestors(node) {
            match it.kind() {
                _ if !self.findings.patience.climbs() => return None,
                AstKind::Function(_) | AstKind::ArrowFunctionExpression(_) => return Some(it.id()),
                _ => {}
            }
        }
        None
    }

    /// Whether the node is in the function of a `new Promise(…)`, which the script itself settles
    /// and may wait for.
    fn is_in_new_promise(&self, node: NodeId) -> bool {
        let nodes = self.semantic.nodes();
        nodes.ancestors(node).any(|it| {
            !self.findings.patience.climbs()
                || matches!(it.kind(), AstKind::NewExpression(it)
                    if self.global_of(&it.callee) == Some("Promise"))
        })
    }

    /// Whether the script returns what this statement or function returns.
    fn is_value_of_script(&self, node: NodeId) -> bool {
        let function = match self.kind(node) {
            AstKind::ArrowFunctionExpression(_) => Some(node),
            _ => self.function_around(node),
        };
        let Some(function) = function else {
            return self.form == Form::Body;
        };
        let nodes = self.semantic.nodes();
        self.form == Form::Function
            && nodes.ancestors(function).all(|it| {
                matches!(
                    it.kind(),
                    AstKind::ExpressionStatement(_)
                        | AstKind::ParenthesizedExpression(_)
                        | AstKind::Program(_)
                )
            })
    }

    fn is_statement(&self, node: NodeId) -> bool {
        matches!(
            self.kind(self.parent(node)),
            AstKind::ExpressionStatement(_)
        )
    }
}

const ALL: &str = "Write `await Promise.all(….map(…))`.";

fn parameters<'a>(function: &'a Expression<'a>) -> Option<&'a FormalParameters<'a>> {
    match function.get_inner_expression() {
        Expression::ArrowFunctionExpression(it) => Some(&it.params),
        Expression::FunctionExpression(it) => Some(&it.params),
        _ => None,
    }
}
