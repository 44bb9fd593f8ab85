//! Instruments a guest so that it marks the table entries that it calls and the addresses that it
//! writes.
//!
//! A comparison of the memory before and after would not suffice: a counter that goes up and down
//! again shows no difference, although its page was written.

use std::convert::Infallible;

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ExportKind, ExportSection, Function, FunctionSection, InstructionSink, MemArg,
    MemorySection, MemoryType, Module, TypeSection, ValType,
};
use wasmparser::{
    CodeSectionReader, ExportSectionReader, FunctionBody, FunctionSectionReader,
    MemorySectionReader, Operator, Parser, TypeSectionReader,
};

/// Name of the memory with one byte for each table entry.
pub(crate) const CALLED: &str = "called";
/// Maximum number of table entries that can be marked. No guest has more; the host refuses larger
/// tables.
pub(crate) const PLACES_MAX: usize = 64 * 1024;

/// Name of the memory with one byte for each word of the guest's own memory.
pub(crate) const WRITTEN: &str = "written";
pub(crate) const WORD_BYTES: usize = 4;
/// Maximum number of words that can be marked; an image is much smaller.
pub(crate) const WORDS_MAX: usize = 8 * 1024 * 1024;

const WASM_PAGE_BYTES: usize = 64 * 1024;
const WORD_BITS: i32 = WORD_BYTES.trailing_zeros() as i32;

/// Maximum size in bytes of a value that one instruction writes.
const VALUE_BYTES_MAX: usize = 16;

pub(crate) type RecodeResult<T> = Result<T, Error<Infallible>>;

/// Returns the same module with the marking added.
pub(crate) fn marking(wasm: &[u8]) -> RecodeResult<Vec<u8>> {
    let mut module = Module::new();
    Marking::default().parse_core_module(&mut module, Parser::new(0), wasm)?;
    Ok(module.finish())
}

/// A rewriter that adds two memories for the marks, and calls of functions that set the marks.
#[derive(Default)]
struct Marking {
    /// Number of parameters of each type of the module.
    parameters: Vec<u32>,
    /// Type of each of the module's functions.
    types: Vec<u32>,
    /// The added function types: a table entry to the same entry; an address and a length to
    /// nothing.
    place_type: u32,
    range_type: u32,
    /// The added functions: for a called entry, for a few written bytes, and for many written
    /// bytes.
    call: u32,
    write: u32,
    fill: u32,
    /// The added memories.
    called: u32,
    written: u32,
    /// Index of the current function.
    at: usize,
}

/// The operands above the address on the stack, for an instruction that writes.
enum Writes {
    /// Size in bytes, offset, and the added local that saves the value.
    Value(i32, u64, u32),
    /// Two numbers, the second of which is the number of bytes.
    Range,
}

/// The added locals, after a function's own.
const ADDRESS: u32 = 0;
const NUMBER: u32 = 1;
const LENGTH: u32 = 2;
const LONG: u32 = 3;
const FLOAT: u32 = 4;
const DOUBLE: u32 = 5;
const VECTOR: u32 = 6;
const LOCALS: [(u32, ValType); 5] = [
    (3, ValType::I32),
    (1, ValType::I64),
    (1, ValType::F32),
    (1, ValType::F64),
    (1, ValType::V128),
];

fn writes(operator: &Operator<'_>) -> Option<Writes> {
    let (bytes, memarg, local) = match operator {
        Operator::MemoryFill { mem: 0 }
        | Operator::MemoryCopy { dst_mem: 0, .. }
        | Operator::MemoryInit { mem: 0, .. } => return Some(Writes::Range),
        Operator::I32Store { memarg } => (4, memarg, NUMBER),
        Operator::I32Store8 { memarg } => (1, memarg, NUMBER),
        Operator::I32Store16 { memarg } => (2, memarg, NUMBER),
        Operator::I64Store { memarg } => (8, memarg, LONG),
        Operator::I64Store8 { memarg } => (1, memarg, LONG),
        Operator::I64Store16 { memarg } => (2, memarg, LONG),
        Operator::I64Store32 { memarg } => (4, memarg, LONG),
        Operator::F32Store { memarg } => (4, memarg, FLOAT),
        Operator::F64Store { memarg } => (8, memarg, DOUBLE),
        Operator::V128Store { memarg } => (16, memarg, VECTOR),
        Operator::V128Store8Lane { memarg, .. } => (1, memarg, VECTOR),
        Operator::V128Store16Lane { memarg, .. } => (2, memarg, VECTOR),
        Operator::V128Store32Lane { memarg, .. } => (4, memarg, VECTOR),
        Operator::V128Store64Lane { memarg, .. } => (8, memarg, VECTOR),
        _ => return None,
    };
    Some(Writes::Value(bytes, memarg.offset, local))
}

impl Marking {
    /// Returns the number of parameters and locals that the function already had.
    fn own_locals(&self, locals: &[(u32, ValType)]) -> u32 {
        let ty = self.types.get(self.at).copied().unwrap_or_default();
        let parameters = self.parameters.get(ty as usize).copied();
        let declared: u32 = locals.iter().map(|(count, _)| count).sum();
        parameters.unwrap_or_default() + declared
    }

    /// Adds a mark before an instruction that writes. The stack stays unchanged.
    fn mark(&self, code: &mut InstructionSink<'_>, writes: &Writes, ours: u32) {
        match *writes {
            Writes::Value(bytes, offset, local) => {
                code.local_set(ours + local)
                    .local_tee(ours + ADDRESS)
                    .local_get(ours + ADDRESS)
                    .i32_const(offset as u32 as i32)
                    .i32_add()
                    .i32_const(bytes)
                    .call(self.write)
                    .local_get(ours + local);
            }
            Writes::Range => {
                code.local_set(ours + LENGTH)
                    .local_set(ours + NUMBER)
                    .local_tee(ours + ADDRESS)
                    .local_get(ours + ADDRESS)
                    .local_get(ours + LENGTH)
                    .call(self.fill)
                    .local_get(ours + NUMBER)
                    .local_get(ours + LENGTH);
            }
        }
    }

    fn call_body(&self) -> Function {
        let mut body = Function::new([]);
        body.instructions()
            .local_get(0)
            .i32_const(1)
            .i32_store8(byte_of(self.called))
            .local_get(0)
            .end();
        body
    }

    /// Marks the first and the last word of a value. No block is short enough to lie between the
    /// two.
    fn write_body(&self) -> Function {
        let mut body = Function::new([]);
        let mut code = body.instructions();
        code.local_get(0)
            .i32_const((WORDS_MAX * WORD_BYTES - VALUE_BYTES_MAX) as i32)
            .i32_lt_u()
            .if_(wasm_encoder::BlockType::Empty);
        code.local_get(0)
            .i32_const(WORD_BITS)
            .i32_shr_u()
            .i32_const(1)
            .i32_store8(byte_of(self.written));
        code.local_get(0)
            .local_get(1)
            .i32_add()
            .i32_const(1)
            .i32_sub()
            .i32_const(WORD_BITS)
            .i32_shr_u()
            .i32_const(1)
            .i32_store8(byte_of(self.written));
        code.end().end();
        body
    }

    fn fill_body(&self) -> Function {
        let limit = (WORDS_MAX * WORD_BYTES / 2) as i32;
        let mut body = Function::new([]);
        let mut code = body.instructions();
        code.local_get(0).i32_const(limit).i32_lt_u();
        code.local_get(1).i32_const(limit).i32_lt_u().i32_and();
        code.local_get(1).i32_const(0).i32_ne().i32_and();
        code.if_(wasm_encoder::BlockType::Empty);
        code.local_get(0).i32_const(WORD_BITS).i32_shr_u();
        code.i32_const(1);
        // From the first word to the last one.
        code.local_get(0)
            .local_get(1)
            .i32_add()
            .i32_const(1)
            .i32_sub()
            .i32_const(WORD_BITS)
            .i32_shr_u();
        code.local_get(0)
            .i32_const(WORD_BITS)
            .i32_shr_u()
            .i32_sub()
            .i32_const(1)
            .i32_add();
        code.memory_fill(self.written).end().end();
        body
    }
}

fn byte_of(memory_index: u32) -> MemArg {
    MemArg {
        offset: 0,
        align: 0,
        memory_index,
    }
}

fn marks(bytes: usize) -> MemoryType {
    MemoryType {
        minimum: (bytes / WASM_PAGE_BYTES) as u64,
        maximum: Some((bytes / WASM_PAGE_BYTES) as u64),
        memory64: false,
        shared: false,
        page_size_log2: None,
    }
}

impl Reencode for Marking {
    type Error = Infallible;

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: TypeSectionReader<'_>,
    ) -> RecodeResult<()> {
        for group in section.clone() {
            for ty in group?.into_types() {
                let parameters = match ty.composite_type.inner {
                    wasmparser::CompositeInnerType::Func(function) => function.params().len(),
                    _ => 0,
                };
                self.parameters.push(parameters as u32);
            }
        }
        utils::parse_type_section(self, types, section)?;
        self.place_type = types.len();
        types.ty().function([ValType::I32], [ValType::I32]);
        self.range_type = types.len();
        types.ty().function([ValType::I32; 2], []);
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> RecodeResult<()> {
        for ty in section.clone() {
            self.types.push(ty?);
        }
        utils::parse_function_section(self, functions, section)?;
        // A guest imports nothing, so all functions are its own.
        self.call = functions.len();
        self.write = self.call + 1;
        self.fill = self.call + 2;
        functions.function(self.place_type);
        functions.function(self.range_type);
        functions.function(self.range_type);
        Ok(())
    }

    fn parse_memory_section(
        &mut self,
        memories: &mut MemorySection,
        section: MemorySectionReader<'_>,
    ) -> RecodeResult<()> {
        utils::parse_memory_section(self, memories, section)?;
        self.called = memories.len();
        self.written = self.called + 1;
        memories.memory(marks(PLACES_MAX));
        memories.memory(marks(WORDS_MAX));
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: ExportSectionReader<'_>,
    ) -> RecodeResult<()> {
        utils::parse_export_section(self, exports, section)?;
        exports.export(CALLED, ExportKind::Memory, self.called);
        exports.export(WRITTEN, ExportKind::Memory, self.written);
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> RecodeResult<()> {
        utils::parse_code_section(self, code, section)?;
        code.function(&self.call_body());
        code.function(&self.write_body());
        code.function(&self.fill_body());
        Ok(())
    }

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> RecodeResult<()> {
        let mut locals = Vec::new();
        for group in body.get_locals_reader()? {
            let (count, ty) = group?;
            locals.push((count, self.val_type(ty)?));
        }
        let ours = self.own_locals(&locals);
        locals.extend(LOCALS);
        let mut function = Function::new(locals);
        for operator in body.get_operators_reader()? {
            let operator = operator?;
            if let Operator::CallIndirect { table_index: 0, .. } = operator {
                function.instructions().call(self.call);
            }
            if let Some(writes) = writes(&operator) {
                self.mark(&mut function.instructions(), &writes, ours);
            }
            function.instruction(&self.instruction(operator)?);
        }
        code.function(&function);
        self.at += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::{Engine, Instance, Store};

    use super::*;

    /// Runs `go(address)`, which writes to the address with `write`, and returns the marked words.
    /// The address is on the stack.
    fn marked(write: impl FnOnce(&mut InstructionSink<'_>), address: i32) -> Vec<usize> {
        let mut types = TypeSection::new();
        types.ty().function([ValType::I32], []);
        let mut functions = FunctionSection::new();
        functions.function(0);
        let mut memories = MemorySection::new();
        memories.memory(marks(WASM_PAGE_BYTES));
        let mut exports = ExportSection::new();
        exports.export("go", ExportKind::Func, 0);
        exports.export("memory", ExportKind::Memory, 0);
        // A local that the function already had, and that must keep its value.
        let mut go = Function::new([(1, ValType::I64)]);
        let mut body = go.instructions();
        body.i64_const(77).local_set(1).local_get(0);
        write(&mut body);
        body.local_get(1).i64_const(77).i64_ne();
        body.if_(wasm_encoder::BlockType::Empty).unreachable().end();
        body.end();
        let mut code = CodeSection::new();
        code.function(&go);
        let mut module = Module::new();
        module
            .section(&types)
            .section(&functions)
            .section(&memories);
        module.section(&exports).section(&code);
        let plain = module.finish();

        let [before, after] = [plain.clone(), marking(&plain).unwrap()].map(|wasm| {
            let engine = Engine::default();
            let module = wasmtime::Module::new(&engine, wasm).unwrap();
            let mut store = Store::new(&engine, ());
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            let go = instance.get_typed_func::<i32, ()>(&mut store, "go");
            go.unwrap().call(&mut store, address).unwrap();
            let memory = instance.get_memory(&mut store, "memory").unwrap();
            let marks = instance.get_memory(&mut store, WRITTEN);
            let marks = marks.map(|marks| marks.data(&store).to_vec());
            (memory.data(&store).to_vec(), marks)
        });
        assert_eq!(before.0, after.0, "the same is written");
        let marks = after.1.unwrap().into_iter().enumerate();
        marks
            .filter(|(_, mark)| *mark != 0)
            .map(|(at, _)| at)
            .collect()
    }

    fn at(offset: u64) -> MemArg {
        MemArg {
            offset,
            ..byte_of(0)
        }
    }

    #[test]
    fn what_is_written_is_marked_with_its_offset_at_its_begin_and_its_end() {
        let byte = |code: &mut InstructionSink<'_>| {
            code.i32_const(5).i32_store8(at(0));
        };
        assert_eq!(marked(byte, 15), [3]);
        let far = |code: &mut InstructionSink<'_>| {
            code.i64_const(5).i64_store(at(800));
        };
        assert_eq!(marked(far, 8), [202, 203]);
        assert_eq!(marked(far, 10), [202, 204]);
        let double = |code: &mut InstructionSink<'_>| {
            code.f64_const(1.5.into()).f64_store(at(0));
        };
        assert_eq!(marked(double, 3), [0, 2]);
        let float = |code: &mut InstructionSink<'_>| {
            code.f32_const(1.5.into()).f32_store(at(4));
        };
        assert_eq!(marked(float, 0), [1]);
        let vector = |code: &mut InstructionSink<'_>| {
            code.v128_const(7).v128_store(at(16));
        };
        assert_eq!(marked(vector, 0), [4, 7]);
    }

    #[test]
    fn writing_what_is_there_already_is_marked_too() {
        let same = |code: &mut InstructionSink<'_>| {
            code.i32_const(0).i32_store(at(0));
        };
        assert_eq!(marked(same, 24), [6]);
    }

    #[test]
    fn what_fills_and_copies_marks_as_much_as_it_writes() {
        let fill = |bytes| {
            move |code: &mut InstructionSink<'_>| {
                code.i32_const(9).i32_const(bytes).memory_fill(0);
            }
        };
        assert_eq!(marked(fill(9), 8), [2, 3, 4]);
        assert_eq!(marked(fill(2), 15), [3, 4]);
        assert_eq!(marked(fill(0), 8), [] as [usize; 0]);
        let copy = |code: &mut InstructionSink<'_>| {
            code.i32_const(4096).i32_const(16).memory_copy(0, 0);
        };
        assert_eq!(marked(copy, 64), [16, 17, 18, 19]);
    }
}
