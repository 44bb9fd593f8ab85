//! Advice about comparisons of sets: all members, some members, or an empty set.

use cedar_policy::pst::{BinaryOp, Expr};

use super::Advice;
use super::ask::way;
use super::part::is_known;
use airlock_core::policy::ast::{PlacedPart, Polarity};
use airlock_core::policy::finding::Finding;
use airlock_core::policy::kind::Kind;
use airlock_core::policy::mentions::ARGS;
use airlock_core::policy::spelling::spelt;

/// Facts that list every destination or every root of a call.
const WHERE: [&str; 4] = ["dest_hosts", "dest_addresses", "dest_domains", "path_roots"];

impl Advice<'_> {
    pub(super) fn sets(&self, seen: &PlacedPart<'_>) -> Option<Finding> {
        let Expr::BinaryOp { op, left, right } = seen.expr else {
            return None;
        };
        if !is_known(seen.sign) {
            return None;
        }
        let gives = seen.sign == Polarity::Gives;
        match (op, way(left), way(right)) {
            (BinaryOp::ContainsAll, None, Some(read)) if gives && read.first()? == ARGS => {
                self.empty(seen, right)
            }
            (BinaryOp::ContainsAll, None, Some(read)) if !gives && is_where(&read) => {
                self.some_missing(seen, left, right)
            }
            (
                BinaryOp::Contains | BinaryOp::ContainsAny | BinaryOp::ContainsAll,
                Some(read),
                None,
            ) if gives && is_where(&read) => self.others_pass(seen, left, right),
            (BinaryOp::ContainsAny, None, Some(read)) if gives && is_where(&read) => {
                self.others_pass(seen, right, left)
            }
            _ => None,
        }
    }

    fn empty(&self, seen: &PlacedPart<'_>, read: &Expr) -> Option<Finding> {
        let read = spelt(read)?;
        let own = self.rule.statement.text().get(seen.tree.range.clone())?;
        let all = self.rule.statement.text();
        if all.contains(&format!("!{read}.isEmpty()")) {
            return None;
        }
        let what = "an empty set passes this test";
        let why = "a condition on all members is true if the set is empty";
        let instead = format!("!{read}.isEmpty() && {own}");
        Some(self.at(seen, Kind::EmptySetPasses, (what, why), Some(instead)))
    }

    fn some_missing(&self, seen: &PlacedPart<'_>, written: &Expr, read: &Expr) -> Option<Finding> {
        let (written, read) = (spelt(written)?, spelt(read)?);
        let what = "one more destination or path disables the rule";
        let why = "the rule only applies if every destination or path of the call is listed";
        let instead = format!("{read}.containsAny({written})");
        Some(self.at(seen, Kind::AllForSome, (what, why), Some(instead)))
    }

    fn others_pass(&self, seen: &PlacedPart<'_>, read: &Expr, written: &Expr) -> Option<Finding> {
        let (read, written) = (spelt(read)?, spelt(written)?);
        let set = match written.starts_with('[') {
            true => written,
            false => format!("[{written}]"),
        };
        let what = "this test checks only one destination or path of the call";
        let why = "a call can name several, and this test is true whatever the others are";
        let instead = format!("{set}.containsAll({read})");
        Some(self.at(seen, Kind::SomeForAll, (what, why), Some(instead)))
    }
}

fn is_where(way: &[String]) -> bool {
    matches!(way, [name] if WHERE.contains(&name.as_str()))
}
