//! Finds the functions that runs call through the table, so that the engine's records of these
//! functions are placed side by side.
//!
//! A function called through the table has a record in each instance, which the engine fills at the
//! first call. The records are in the order in which the module first mentions the functions, and a
//! guest has thousands of functions. In the linker's order, the records that a run fills are spread
//! over a dozen pages. So the image builder runs scripts with a module that marks its calls, and
//! the image mentions the called functions first.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;

use wasm_encoder::reencode::{Reencode, utils};
use wasm_encoder::{CodeSection, ElementSection, Elements, Module};
use wasmparser::{
    ElementItems, ElementKind, ElementSectionReader, FunctionBody, Operator, Parser, Payload,
};

use crate::marking::RecodeResult;

/// The table entries that were called, each with the number of runs that call it.
#[derive(Default)]
pub(crate) struct Callees {
    runs: BTreeMap<usize, usize>,
}

impl Callees {
    /// Adds the marks of one run.
    pub(crate) fn note(&mut self, marks: &[u8]) {
        for (place, mark) in marks.iter().enumerate() {
            if *mark != 0 {
                *self.runs.entry(place).or_default() += 1;
            }
        }
    }

    /// Returns the same module, except that it mentions these functions before all others: first
    /// the functions that most runs call.
    pub(crate) fn named_first(&self, wasm: &[u8]) -> RecodeResult<Vec<u8>> {
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

/// Returns the function at each table entry that the module itself fills.
fn table(wasm: &[u8]) -> RecodeResult<BTreeMap<usize, u32>> {
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

/// A rewriter that adds an element segment which fills nothing, before the segments that fill the
/// table.
struct Naming {
    first: Vec<u32>,
}

impl Reencode for Naming {
    type Error = Infallible;

    fn parse_element_section(
        &mut self,
        elements: &mut ElementSection,
        section: ElementSectionReader<'_>,
    ) -> RecodeResult<()> {
        elements.declared(Elements::Functions(Cow::Borrowed(&self.first)));
        utils::parse_element_section(self, elements, section)
    }

    /// Leaves code unchanged.
    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> RecodeResult<()> {
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

    /// Returns a module with four functions that return their number. All are in the table from
    /// entry 1 on, in reverse order. `go(place)` calls the function at that entry.
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

    /// Returns the results of `go` for each entry, and the marks.
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

    /// Returns for each segment whether it fills the table, and its functions.
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
