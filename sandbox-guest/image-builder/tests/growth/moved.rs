//! Instruments a guest to count the bytes that it moves, because an instruction that copies or
//! fills memory counts as one instruction, whatever the size.

use std::convert::Infallible;

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, ExportKind, ExportSection, Function, FunctionSection, GlobalSection,
    GlobalType, Module, TypeSection, ValType,
};
use wasmparser::{
    CodeSectionReader, ExportSectionReader, FunctionSectionReader, GlobalSectionReader, Operator,
    Parser, TypeSectionReader,
};

/// Name of the global with the count.
pub(crate) const MOVED: &str = "moved";

type RecodeResult<T> = Result<T, Error<Infallible>>;

/// Returns the same module with the counting added.
pub(crate) fn counting(wasm: &[u8]) -> Vec<u8> {
    let mut module = Module::new();
    Counting::default()
        .parse_core_module(&mut module, Parser::new(0), wasm)
        .unwrap();
    module.finish()
}

#[derive(Default)]
struct Counting {
    /// Type of a function that takes a length, adds it to the count, and returns it.
    ty: u32,
    count: u32,
    moved: u32,
}

impl Reencode for Counting {
    type Error = Infallible;

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: TypeSectionReader<'_>,
    ) -> RecodeResult<()> {
        utils::parse_type_section(self, types, section)?;
        self.ty = types.len();
        types.ty().function([ValType::I32], [ValType::I32]);
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> RecodeResult<()> {
        utils::parse_function_section(self, functions, section)?;
        // A guest imports nothing, so all functions are its own.
        self.count = functions.len();
        functions.function(self.ty);
        Ok(())
    }

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: GlobalSectionReader<'_>,
    ) -> RecodeResult<()> {
        utils::parse_global_section(self, globals, section)?;
        self.moved = globals.len();
        let ty = GlobalType {
            val_type: ValType::I64,
            mutable: true,
            shared: false,
        };
        globals.global(ty, &ConstExpr::i64_const(0));
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: ExportSectionReader<'_>,
    ) -> RecodeResult<()> {
        utils::parse_export_section(self, exports, section)?;
        exports.export(MOVED, ExportKind::Global, self.moved);
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> RecodeResult<()> {
        utils::parse_code_section(self, code, section)?;
        let mut body = Function::new([]);
        body.instructions()
            .global_get(self.moved)
            .local_get(0)
            .i64_extend_i32_u()
            .i64_add()
            .global_set(self.moved)
            .local_get(0)
            .end();
        code.function(&body);
        Ok(())
    }

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: wasmparser::FunctionBody<'_>,
    ) -> RecodeResult<()> {
        let mut function = self.new_function_with_parsed_locals(&body)?;
        for operator in body.get_operators_reader()? {
            let operator = operator?;
            // The length is on top of the stack.
            if matches!(
                operator,
                Operator::MemoryCopy { .. } | Operator::MemoryFill { .. }
            ) {
                function.instructions().call(self.count);
            }
            function.instruction(&self.instruction(operator)?);
        }
        code.function(&function);
        Ok(())
    }
}
