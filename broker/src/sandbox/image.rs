//! An image in an engine, ready to be instantiated.

use std::fmt;
use std::io::ErrorKind;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use guest_image::GuestImage;
use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::{Config, CustomCodeMemory, Engine, InstancePre, Linker, Module, ModuleExport};

use super::SandboxError;
use super::bounds::Watch;
use super::engine::JsEngine;
use super::single_pages::SinglePages;
use super::ticker::Ticker;
use crate::budget::Interrupt;

/// No machine that an image is built for has smaller pages.
const PAGE_BYTES: usize = 4096;

pub(super) struct Loaded {
    pub(super) engine: Engine,
    pub(super) instances: InstancePre<Watch>,
    pub(super) exports: Exports,
    pub(super) ticker: Ticker,
    /// Makes its guests look up before the next tick.
    pub(super) interrupt: Interrupt,
    pub(super) single_pages: SinglePages,
    pub(super) shadow_stack_bytes: usize,
    /// Where its guests leave their last words, once one of them has said so.
    pub(super) landmark: OnceLock<u32>,
}

/// Where a guest's exports are, looked up once.
pub(super) struct Exports {
    pub(super) memory: ModuleExport,
    pub(super) alloc: ModuleExport,
    pub(super) start: ModuleExport,
    pub(super) resume: ModuleExport,
    pub(super) landmark: ModuleExport,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").finish_non_exhaustive()
    }
}

impl Loaded {
    pub(super) fn load(
        engine: Engine,
        image: GuestImage,
        bytes: Bytes,
    ) -> Result<Self, SandboxError> {
        let name = image.name;
        let unloadable = |why: wasmtime::Error| unloadable(name, &why);
        let module = deserialize(&engine, image, bytes).map_err(unloadable)?;
        if let Some(import) = module.imports().next() {
            let import = format!("{}.{}", import.module(), import.name());
            return Err(SandboxError::Imports {
                name: name.to_owned(),
                import,
            });
        }
        // Here and not with the first guest, so that it is told before anything has begun.
        module
            .initialize_copy_on_write_image()
            .map_err(unloadable)?;
        let find = |export: &'static str| {
            module
                .get_export_index(export)
                .ok_or_else(|| SandboxError::ExportMissing {
                    name: name.to_owned(),
                    export,
                })
        };
        let exports = Exports {
            memory: find("memory")?,
            alloc: find("alloc")?,
            start: find("start")?,
            resume: find("resume")?,
            landmark: find("landmark")?,
        };
        let instances = Linker::new(&engine)
            .instantiate_pre(&module)
            .map_err(unloadable)?;
        let ticker = Ticker::start(engine.weak()).map_err(|why| unloadable(why.into()))?;
        let weak = engine.weak();
        let interrupt: Interrupt = Arc::new(move || {
            if let Some(engine) = weak.upgrade() {
                engine.increment_epoch();
            }
        });
        Ok(Self {
            engine,
            instances,
            exports,
            ticker,
            interrupt,
            single_pages: SinglePages::ask(),
            shadow_stack_bytes: JsEngine::of_name(name)
                .map_or(cage::SHADOW_STACK_BYTES, JsEngine::shadow_stack_bytes),
            landmark: OnceLock::new(),
        })
    }
}

fn unloadable(name: &str, why: &wasmtime::Error) -> SandboxError {
    let is_too_large = |cause: &std::io::Error| cause.kind() == ErrorKind::FileTooLarge;
    let name = name.to_owned();
    if why.downcast_ref().is_some_and(is_too_large) {
        return SandboxError::FilesTooSmall { name };
    }
    SandboxError::Unloadable {
        name,
        why: format!("{why:#}"),
    }
}

/// What becomes of an image's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    /// They run where they lie. The engine allows that once in a process.
    InPlace,
    Copied,
}

fn deserialize(engine: &Engine, image: GuestImage, bytes: Bytes) -> wasmtime::Result<Module> {
    let whole = NonNull::from(image.precompiled);
    let is_page_aligned = image.precompiled.as_ptr().addr().is_multiple_of(PAGE_BYTES);
    // SAFETY: the bytes are what `precompile_module` of this very version wrote:
    // they were built with this program, or carry a digest that was decided on.
    // The engine refuses other versions, settings and processors by itself. They
    // live as long as the program, and nothing can write to them.
    #[expect(unsafe_code, reason = "compiled code can only be trusted, not checked")]
    unsafe {
        if bytes == Bytes::InPlace && is_page_aligned {
            Module::deserialize_raw(engine, whole)
        } else {
            Module::deserialize(engine, image.precompiled)
        }
    }
}

/// Lets the engine run an image where it lies, in the program's own read-only
/// pages, which are shared with every other process of this program and read
/// from disk as they are needed.
pub(super) fn in_place(config: &mut Config) {
    config.with_custom_code_memory(Some(Arc::new(InPlace)));
}

struct InPlace;

impl CustomCodeMemory for InPlace {
    fn required_alignment(&self) -> usize {
        PAGE_BYTES
    }

    fn publish_executable(&self, start: *const u8, length: usize) -> wasmtime::Result<()> {
        // SAFETY: the range is whole pages of one image, which hold nothing but its code.
        #[expect(unsafe_code, reason = "making pages executable has no safe form")]
        unsafe {
            let readable_code = MprotectFlags::READ | MprotectFlags::EXEC;
            mprotect(start.cast_mut().cast(), length, readable_code)?;
        }
        Ok(())
    }

    /// The pages stay as they are: read-only, and code.
    fn unpublish_executable(&self, _start: *const u8, _length: usize) -> wasmtime::Result<()> {
        Ok(())
    }
}
