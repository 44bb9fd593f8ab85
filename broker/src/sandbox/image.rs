//! An image in an engine, ready to be instantiated.

use std::fmt;

use guest_image::GuestImage;
use wasmtime::{Engine, InstancePre, Linker, Module, ModuleExport};

use super::SandboxError;
use super::bounds::Watch;
use super::ticker::Ticker;

pub(super) struct Loaded {
    pub(super) engine: Engine,
    pub(super) instances: InstancePre<Watch>,
    pub(super) exports: Exports,
    pub(super) ticker: Ticker,
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
    pub(super) fn load(engine: Engine, image: GuestImage) -> Result<Self, SandboxError> {
        let name = image.name;
        let unloadable = |why: wasmtime::Error| SandboxError::Unloadable {
            name: name.to_owned(),
            why: format!("{why:#}"),
        };
        let module = deserialize(&engine, image).map_err(unloadable)?;
        if let Some(import) = module.imports().next() {
            let import = format!("{}.{}", import.module(), import.name());
            return Err(SandboxError::Imports {
                name: name.to_owned(),
                import,
            });
        }
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
        Ok(Self {
            engine,
            instances,
            exports,
            ticker,
        })
    }
}

fn deserialize(engine: &Engine, image: GuestImage) -> wasmtime::Result<Module> {
    // SAFETY: the bytes are what `precompile_module` of this very version wrote:
    // they were built with this program, or carry a digest that was decided on.
    // The engine refuses other versions, settings and processors by itself.
    #[expect(unsafe_code, reason = "compiled code can only be trusted, not checked")]
    unsafe {
        Module::deserialize(engine, image.precompiled)
    }
}
