//! The functions of a script, and which of them may come to call which others, by names: a
//! function is whatever has its name. What is called by another name, or by none, may be any.

use boa_ast::function::FunctionBody;
use boa_interner::Sym;
use rustc_hash::{FxHashMap, FxHashSet};

use super::cycles::on_a_cycle;

/// What a script has of functions.
#[derive(Default)]
pub(super) struct Functions<'a> {
    pub(super) all: Vec<Function<'a>>,
    /// Names of variables and of members that may hold any function.
    pub(super) variables: FxHashSet<Sym>,
    pub(super) members: FxHashSet<Sym>,
    /// Functions are called where no call is written.
    pub(super) implied: bool,
}

/// One function, or what is evaluated when a class makes an object.
#[derive(Default)]
pub(super) struct Function<'a> {
    pub(super) names: Vec<Sym>,
    /// Absent for a class that has no constructor.
    pub(super) body: Option<&'a FunctionBody>,
    /// Names that stand in it.
    pub(super) mentions: FxHashSet<Sym>,
    pub(super) inside: Vec<usize>,
    /// What it calls, or has called by what is built in.
    pub(super) variables: FxHashSet<Sym>,
    pub(super) members: FxHashSet<Sym>,
    pub(super) calls_anything: bool,
}

impl<'a> Functions<'a> {
    pub(super) fn that_may_call_themselves(&self) -> impl Iterator<Item = &'a FunctionBody> {
        let on_a_cycle = on_a_cycle(&self.ways());
        let own = self.all.iter().zip(on_a_cycle);
        own.filter_map(|(function, is_on_a_cycle)| {
            // Of functions that lead back to each other, one at least has a name.
            let is_own = self.implied
                || self.calls_any(function)
                || is_on_a_cycle && !function.names.is_empty();
            function.body.filter(|_| is_own)
        })
    }

    /// From each function to those in it and to the names in it, and from each name to the
    /// functions that have it. Names come behind the functions.
    fn ways(&self) -> Vec<Vec<usize>> {
        let mut numbers = FxHashMap::default();
        for name in self.all.iter().flat_map(|function| &function.names) {
            let next = self.all.len() + numbers.len();
            numbers.entry(*name).or_insert(next);
        }
        let mut ways = vec![Vec::new(); self.all.len() + numbers.len()];
        for (number, function) in self.all.iter().enumerate() {
            for name in function.names.iter().filter_map(|name| numbers.get(name)) {
                if let Some(ways) = ways.get_mut(*name) {
                    ways.push(number);
                }
            }
            if let Some(ways) = ways.get_mut(number) {
                let mentions = function.mentions.iter();
                ways.extend(mentions.filter_map(|name| numbers.get(name)));
                ways.extend(&function.inside);
            }
        }
        ways
    }

    fn calls_any(&self, function: &Function<'_>) -> bool {
        function.calls_anything
            || !function.variables.is_disjoint(&self.variables)
            || !function.members.is_disjoint(&self.members)
    }
}
