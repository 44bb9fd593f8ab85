//! An image that is loaded into an engine, ready to be instantiated.

use std::fmt;
use std::io::ErrorKind;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use guest_image::GuestImage;
use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::{Config, CustomCodeMemory, Engine, InstancePre, Linker, Module, ModuleExport};

use super::SandboxError;
use super::bounds::EpochGuard;
use super::engine::JsEngine;
use super::single_pages::SinglePages;
use super::ticker::Ticker;
use crate::budget::Interrupt;

/// The smallest page size of all machines for which images are built.
const PAGE_BYTES: usize = 4096;

pub(super) struct LoadedImage {
    pub(super) engine: Engine,
    pub(super) instances: InstancePre<EpochGuard>,
    pub(super) exports: Exports,
    pub(super) ticker: Ticker,
    /// Makes a computing guest check its bounds before the next tick.
    pub(super) interrupt: Interrupt,
    pub(super) single_pages: SinglePages,
    pub(super) shadow_stack_bytes: usize,
    /// The address of the guests' final output, once a guest has reported it.
    pub(super) landmark: OnceLock<u32>,
}

/// The exports of a guest, looked up once.
pub(super) struct Exports {
    pub(super) memory: ModuleExport,
    pub(super) alloc: ModuleExport,
    pub(super) start: ModuleExport,
    pub(super) resume: ModuleExport,
    pub(super) landmark: ModuleExport,
}

impl fmt::Debug for LoadedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedImage").finish_non_exhaustive()
    }
}

impl LoadedImage {
    pub(super) fn load(
        engine: Engine,
        image: GuestImage,
        bytes: ImageBytes,
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
        // Wasmtime would do this with the first guest. Doing it here reports a failure before a run
        // begins.
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
            shadow_stack_bytes: JsEngine::of_name(name).map_or(
                wasmtime_config::SHADOW_STACK_BYTES,
                JsEngine::shadow_stack_bytes,
            ),
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

/// How the bytes of an image are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageBytes {
    /// The code runs from the image itself. The engine allows that once per process.
    InPlace,
    Copied,
}

fn deserialize(engine: &Engine, image: GuestImage, bytes: ImageBytes) -> wasmtime::Result<Module> {
    let whole = NonNull::from(image.precompiled);
    let is_page_aligned = image.precompiled.as_ptr().addr().is_multiple_of(PAGE_BYTES);
    // SAFETY: the bytes are the output of `precompile_module` of exactly this version. They were
    // built with this program, or have a digest that was fixed beforehand. Wasmtime refuses images
    // for other versions, settings and processors. The bytes live as long as the program, and
    // nothing can write to them.
    #[expect(unsafe_code, reason = "compiled code can only be trusted, not checked")]
    unsafe {
        if bytes == ImageBytes::InPlace && is_page_aligned {
            Module::deserialize_raw(engine, whole)
        } else {
            Module::deserialize(engine, image.precompiled)
        }
    }
}

/// Lets Wasmtime run an image from the program's own read-only pages. Other processes of this
/// program share these pages, and the kernel reads them from disk when they are needed.
pub(super) fn in_place(config: &mut Config) {
    config.with_custom_code_memory(Some(Arc::new(InPlace)));
}

struct InPlace;

impl CustomCodeMemory for InPlace {
    fn required_alignment(&self) -> usize {
        PAGE_BYTES
    }

    fn publish_executable(&self, start: *const u8, length: usize) -> wasmtime::Result<()> {
        // SAFETY: the range consists of whole pages of one image that contain only its code.
        #[expect(unsafe_code, reason = "making pages executable has no safe form")]
        unsafe {
            let readable_code = MprotectFlags::READ | MprotectFlags::EXEC;
            mprotect(start.cast_mut().cast(), length, readable_code)?;
        }
        Ok(())
    }

    /// Leaves the pages read-only and executable.
    fn unpublish_executable(&self, _start: *const u8, _length: usize) -> wasmtime::Result<()> {
        Ok(())
    }
}
