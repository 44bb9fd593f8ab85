//! Checks a call that passes values instead of one object, for a tool that defines an order of its
//! arguments.

use std::collections::HashSet;
use std::rc::Rc;

use oxc_ast::ast::Expression;
use oxc_span::GetSpan;

use super::super::static_value::StaticValue;
use super::{Arguments, Misfit};
use crate::shape::Kind;
use codegen_shared::finding::{FindingCode, Severity};

impl<'a> Arguments<'_, 'a, '_, '_> {
    pub(in crate::check) fn in_order(mut self, values: &[&'a Expression<'a>]) {
        let shape = Rc::clone(&self.shape);
        let Kind::Object(object) = &shape.input.kind else {
            return;
        };
        let order = &self.tool.names.order;
        let mut misfits = Vec::new();
        let mut present = HashSet::new();
        for (name, value) in order.iter().copied().zip(values) {
            if matches!(self.reading.known(value), StaticValue::Undefined) {
                continue;
            }
            present.insert(name);
            if let Some(property) = object.properties.iter().find(|it| it.name == name) {
                misfits.extend(self.fit(value, &property.shape, name, 0));
            }
        }
        let begin = values.first().map_or(0, |it| it.span().start);
        misfits.extend(self.missing(object, &present, begin));
        if let Some(more) = values.get(order.len()) {
            misfits.push(Misfit {
                severity: Severity::Error,
                code: FindingCode::NotOneObject,
                at: more.span().start,
                message: format!("`{}` takes only {}", self.tool.name(), order.join(", ")),
                suggestion: Some("Remove the rest.".to_owned()),
            });
        }
        self.say(misfits);
    }
}
