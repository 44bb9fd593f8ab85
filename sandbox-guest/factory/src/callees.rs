//! Which functions runs call by the table, so that the engine's records of them lie side by side.
//!
//! A function that is called by its place in the table has a record in each instance, which the
//! engine enters when it is first called. The records stand in the order in which the module
//! first names the functions, and a guest has thousands of them: in the linker's order those
//! that a run enters lie in a dozen pages. So the runs go in a module that marks what they call,
//! and the image names these functions first.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;

use wasm_encoder::reencode::{Reencode, utils};
use wasm_encoder::{CodeSection, ElementSection, Elements, Module};
use wasmparser::{
    ElementItems, ElementKind, ElementSectionReader, FunctionBody, Operator, Parser, Payload,
};

use crate::marking::Recoded;

/// Which places were called, and in how many runs.
#[derive(Default)]
pub(crate) struct Callees {
    runs: BTreeMap<usize, usize>,
}

impl Callees {
    /// Enters what one run marked.
    pub(crate) fn note(&mut self, marks: &[u8]) {
        for (place, mark) in marks.iter().enumerate() {
            if *mark != 0 {
                *self.runs.entry(place).or_default() += 1;
            }
        }
    }

    /// The same module, which names these functions before it names the others: first what
    /// most runs call.
    pub(crate) fn named_first(&self, wasm: &[u8]) -> Recoded<Vec<u8>> {
        let table = table(wasm)?;
        let mut places: Vec<_> = self.runs.iter().collect();
        places.sort_by_key(|(place, runs)| (std::cmp::Reverse(**runs), **place));
        let functions = places
            .into_iter()
            .filter_map(|(place, _)| table.get(place).copied());
        let mut module = Module::new();
        let mut naming = Naming {
            first: functions.collect(),
        };
        naming.parse_core_module(&mut module, Parser::new(0), wasm)?;
        Ok(module.finish())
    }
}

/// The function at each place that the module fills itself.
fn table(wasm: &[u8]) -> Recoded<BTreeMap<usize, u32>> {
    let mut table = BTreeMap::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::ElementSection(section) = payload? else {
            continue;
        };
        for element in section {
            let element = element?;
            let ElementKind::Active { offset_expr, .. } = element.kind else {
                continue;
            };
            let Operator::I32Const { value } = offset_expr.get_operators_reader().read()? else {
                continue;
            };
            if let (Ok(begin), ElementItems::Functions(functions)) =
                (usize::try_from(value), element.items)
            {
                for (index, function) in functions.into_iter().enumerate() {
                    table.insert(begin + index, function?);
                }
            }
        }
    }
    Ok(table)
}

/// Adds a segment that fills nothing before those that fill the table.
struct Naming {
    first: Vec<u32>,
}

impl Reencode for Naming {
    type Error = Infallible;

    fn parse_element_section(
        &mut self,
        elements: &mut ElementSection,
        section: ElementSectionReader<'_>,
    ) -> Recoded<()> {
        elements.declared(Elements::Functions(Cow::Borrowed(&self.first)));
        utils::parse_element_section(self, elements, section)
    }

    /// Code stays as it is.
    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> Recoded<()> {
        code.raw(body.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{
        ConstExpr, ExportKind, ExportSection, Function, FunctionSection, MemorySection, MemoryType,
        RefType, TableSection, TableType, TypeSection, ValType,
    };
    use wasmtime::{Engine, Instance, Store};

    use super::*;
    use crate::marking::{CALLED, PLACES_MAX, marking};

    /// Four functions that answer with their number, all in the table from place 1 on, the last
    /// one first, and `go(place)`, which calls the one at that place.
    fn module() -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([], [ValType::I32]);
        types.ty().function([ValType::I32], [ValType::I32]);
        let mut functions = FunctionSection::new();
        let mut code = CodeSection::new();
        for number in 0..4 {
            functions.function(0);
            let mut body = Function::new([]);
            body.instructions().i32_const(number).end();
            code.function(&body);
        }
        functions.function(1);
        let mut go = Function::new([]);
        go.instructions().local_get(0).call_indirect(0, 0).end();
        code.function(&go);
        let mut tables = TableSection::new();
        tables.table(TableType {
            element_type: RefType::FUNCREF,
            minimum: 5,
            maximum: Some(5),
            table64: false,
            shared: false,
        });
        let mut memories = MemorySection::new();
        memories.memory(MemoryType {
            minimum: 0,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut exports = ExportSection::new();
        exports.export("go", ExportKind::Func, 4);
        let mut elements = ElementSection::new();
        elements.active(
            None,
            &ConstExpr::i32_const(1),
            Elements::Functions(Cow::Borrowed(&[3, 2, 1, 0])),
        );
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&tables);
        module.section(&memories).section(&exports);
        module.section(&elements).section(&code);
        module.finish()
    }

    /// What `go` answers at each place, and what is marked then.
    fn gone(wasm: &[u8], places: &[i32]) -> (Vec<i32>, Vec<u8>) {
        let engine = Engine::default();
        let module = wasmtime::Module::new(&engine, wasm).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let go = instance
            .get_typed_func::<i32, i32>(&mut store, "go")
            .unwrap();
        let answers = places.iter().map(|at| go.call(&mut store, *at).unwrap());
        let answers = answers.collect();
        let marks = instance.get_memory(&mut store, CALLED);
        (
            answers,
            marks.map_or(Vec::new(), |marks| marks.data(&store).to_vec()),
        )
    }

    /// Each segment: whether it fills the table, and its functions.
    fn segments(wasm: &[u8]) -> Vec<(bool, Vec<u32>)> {
        let mut segments = Vec::new();
        for payload in Parser::new(0).parse_all(wasm) {
            if let Payload::ElementSection(section) = payload.unwrap() {
                for element in section {
                    let element = element.unwrap();
                    let ElementItems::Functions(functions) = element.items else {
                        panic!("not functions");
                    };
                    let functions = functions.into_iter().map(Result::unwrap);
                    let fills = matches!(element.kind, ElementKind::Active { .. });
                    segments.push((fills, functions.collect()));
                }
            }
        }
        segments
    }

    #[test]
    fn a_module_that_marks_answers_as_before_and_has_a_mark_for_each_place_called() {
        let (answers, marks) = gone(&marking(&module()).unwrap(), &[2, 4, 2]);
        assert_eq!(answers, [2, 0, 2]);
        assert_eq!(marks.len(), PLACES_MAX);
        assert_eq!(marks[..6], [0, 0, 1, 0, 1, 0]);
        assert!(marks[6..].iter().all(|mark| *mark == 0));
    }

    #[test]
    fn what_most_runs_call_is_named_first_and_the_table_stays_as_it_is() {
        let mut callees = Callees::default();
        for marks in [[0, 1, 0, 0, 1], [0, 0, 0, 1, 1]] {
            callees.note(&marks);
        }
        let named = callees.named_first(&module()).unwrap();
        assert_eq!(
            segments(&named),
            [(false, vec![0, 3, 1]), (true, vec![3, 2, 1, 0])]
        );
        assert_eq!(gone(&named, &[1, 2, 3, 4]).0, [3, 2, 1, 0]);
    }

    #[test]
    fn a_mark_beyond_the_table_names_nothing() {
        let mut callees = Callees::default();
        callees.note(&[1, 0, 0, 0, 0, 0, 1]);
        let named = callees.named_first(&module()).unwrap();
        assert_eq!(segments(&named)[0], (false, Vec::new()));
    }
}
