//! The sandbox: loads a guest, starts it, lets it go on, stops it. The only
//! module that touches `wasmtime`.
//!
//! A guest runs on the thread that calls it, and only while it is called; its
//! waiting costs memory and nothing else. It imports nothing: what comes out is
//! the frame of its [`sandbox_protocol::Step`], whose place and length are
//! checked before a byte is read. Whatever goes wrong inside it ends the guest
//! and comes back as a [`airlock_core::effect::GuestStop`].
//!
//! The calling thread needs at least two mebibytes of stack, which is what
//! threads have by default. The checker, which reads the text of scripts, runs in
//! an engine of its own on threads with a larger stack.

mod bounds;
mod checker;
mod differences;
mod engine;
mod guest;
mod image;
mod large_pages;
pub(crate) mod large_stack;
mod live;
mod memory;
mod pool;
mod reader;
mod second_look;
mod shadow_stack;
mod single_pages;
mod ticker;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use airlock_core::id::Digest;
use guest_image::GuestImage;
use thiserror::Error;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

pub use bounds::{GuestBounds, StopHandle};
pub(crate) use checker::memory_bytes_max as check_bytes_max;
pub use checker::{CheckLimits, Checker};
pub use differences::{Compared, DIFFERENCES, EngineDifference};
pub use engine::JsEngine;
pub use guest::Guest;
use image::{Bytes, Loaded};
pub use large_stack::spawn as spawn_large;
use pool::Pool;

use crate::clock::Clock;

/// What stays resident of a pooled memory between two guests; beyond it, pages are given
/// back. Where the kernel says which pages were written, these count: few scripts write more,
/// and 64 that all write much leave no more than this each behind.
const KEEP_WRITTEN_BYTES: usize = 2 * 1024 * 1024;
/// Elsewhere they are the first ones: the shadow stack and the initialised data behind it.
const KEEP_FIRST_BYTES: usize = 12 * 1024 * 1024;

const TABLE_ELEMENTS_MAX: usize = 65_536;

#[derive(Debug, Error)]
pub enum SandboxError {
    #[error("the guest image `{name}` cannot be loaded: {why}")]
    Unloadable { name: String, why: String },
    #[error(
        "the memory of the guest `{name}` begins as a file in memory, and files may not grow that large here"
    )]
    FilesTooSmall { name: String },
    #[error("this build of airlock does not carry the engine `{0}`")]
    NotCarried(JsEngine),
    #[error("the guest image `{name}` is not the one it should be: its digest is {found}")]
    WrongDigest { name: String, found: Digest },
    #[error("the guest `{name}` imports `{import}`; a guest imports nothing")]
    Imports { name: String, import: String },
    #[error("the guest `{name}` has no export `{export}` of the expected type")]
    ExportMissing { name: String, export: &'static str },
}

/// A loaded guest image, from which guests are made. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

struct Shared {
    image: GuestImage,
    engine: EngineSettings,
    bytes: Bytes,
    digest: Digest,
    clock: Clock,
    /// Held while the image is loaded.
    loading: Mutex<()>,
    /// None in it where there is no pool.
    pooled: OnceLock<Option<Loaded>>,
    /// For guests beyond the pool, and where there is none.
    unpooled: OnceLock<Loaded>,
    pool: Pool,
}

/// What differs between the engines that guests run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EngineSettings {
    /// Stack that a guest may use on the thread that calls it.
    stack_bytes: usize,
    /// Guests that live at once in memory that is kept ready for them; more than these get memory
    /// of their own, at some microseconds each.
    pooled_max: u32,
}

impl EngineSettings {
    const SCRIPTS: Self = Self {
        stack_bytes: cage::GUEST_STACK_BYTES,
        pooled_max: 1_100,
    };
    /// A checker lives for a moment, so few are there at once.
    const CHECKER: Self = Self {
        stack_bytes: large_stack::GUEST_STACK_BYTES,
        pooled_max: 100,
    };
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("image", &self.shared.image)
            .finish_non_exhaustive()
    }
}

impl Sandbox {
    /// A guest that this program carries. Its bytes are the program's own and are
    /// not hashed again. It is loaded once in a process and shared from then on.
    pub fn load_embedded(engine: JsEngine) -> Result<Self, SandboxError> {
        let sandbox = Self::embedded(engine)?;
        sandbox.loaded()?;
        Ok(sandbox)
    }

    /// The same, loaded when [`Self::loaded`] is called or a guest is needed.
    pub(crate) fn embedded(engine: JsEngine) -> Result<Self, SandboxError> {
        static EMBEDDED: Mutex<BTreeMap<JsEngine, Sandbox>> = Mutex::new(BTreeMap::new());
        let mut embedded = EMBEDDED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = embedded.get(&engine) {
            return Ok(sandbox.clone());
        }
        let image = engine.image().ok_or(SandboxError::NotCarried(engine))?;
        let sandbox = Self::trusted(image, Bytes::InPlace, EngineSettings::SCRIPTS)?;
        embedded.insert(engine, sandbox.clone());
        Ok(sandbox)
    }

    /// The guest that reads the text of scripts, loaded when it is first needed.
    fn checker() -> Result<Self, SandboxError> {
        static CHECKER: OnceLock<Sandbox> = OnceLock::new();
        if let Some(checker) = CHECKER.get() {
            return Ok(checker.clone());
        }
        let settings = EngineSettings::CHECKER;
        let checker = Self::trusted(guest_image::CHECKER, Bytes::InPlace, settings)?;
        Ok(CHECKER.get_or_init(|| checker).clone())
    }

    fn is_checker(&self) -> bool {
        self.shared.engine == EngineSettings::CHECKER
    }

    /// Loads an image from elsewhere. Its code runs as it is, so its digest must
    /// be one that was decided on beforehand.
    pub fn load(image: GuestImage) -> Result<Self, SandboxError> {
        let found = Digest::of(image.precompiled);
        if digest_of(&image) != Some(found) {
            return Err(SandboxError::WrongDigest {
                name: image.name.to_owned(),
                found,
            });
        }
        let sandbox = Self::trusted(image, Bytes::Copied, EngineSettings::SCRIPTS)?;
        sandbox.loaded()?;
        Ok(sandbox)
    }

    fn trusted(
        image: GuestImage,
        bytes: Bytes,
        engine: EngineSettings,
    ) -> Result<Self, SandboxError> {
        let digest = digest_of(&image)
            .ok_or_else(|| unloadable(image, "its digest is not written as one".to_owned()))?;
        Ok(Self {
            shared: Arc::new(Shared {
                image,
                engine,
                bytes,
                digest,
                clock: Clock::start(),
                loading: Mutex::new(()),
                pooled: OnceLock::new(),
                unpooled: OnceLock::new(),
                pool: Pool::default(),
            }),
        })
    }

    /// Returns when guests can be made, or says why they cannot. It computes. What fails is not
    /// kept.
    pub(crate) fn loaded(&self) -> Result<(), SandboxError> {
        let Shared {
            image,
            engine,
            bytes,
            ..
        } = *self.shared;
        let loading = self.shared.loading.lock();
        let _loading = loading.unwrap_or_else(PoisonError::into_inner);
        if self.shared.pooled.get().is_some() {
            return Ok(());
        }
        // Without the address space for a pool, every guest gets memory of its own.
        let pooled = Engine::new(&engine.pooling())
            .ok()
            .map(|engine| Loaded::load(engine, image, bytes));
        let pooled = pooled.transpose()?;
        if pooled.is_none() {
            let engine = Engine::new(&engine.unpooled());
            let engine = engine.map_err(|why| unloadable(image, format!("{why:#}")))?;
            let _ = self
                .shared
                .unpooled
                .set(Loaded::load(engine, image, bytes)?);
        }
        let _ = self.shared.pooled.set(pooled);
        Ok(())
    }

    pub fn name(&self) -> &str {
        self.shared.image.name
    }

    /// Which engine this is, when it is one that scripts can choose.
    pub fn engine(&self) -> Option<JsEngine> {
        JsEngine::of_name(self.name())
    }

    /// Which guest this is, exactly.
    pub fn digest(&self) -> Digest {
        self.shared.digest
    }

    /// Bytes of compiled code and initialised memory.
    pub fn image_bytes(&self) -> usize {
        self.shared.image.precompiled.len()
    }

    /// What the loaded module imports, entry by entry: nothing, or it would not be loaded.
    pub fn imports(&self) -> Vec<String> {
        let module = self
            .pooled()
            .or_else(|| self.unpooled())
            .map(|loaded| loaded.instances.module());
        let imports = module.into_iter().flat_map(|module| module.imports());
        imports
            .map(|import| format!("{}.{}", import.module(), import.name()))
            .collect()
    }

    /// A guest that has not been started.
    pub fn guest(&self, bounds: GuestBounds, stop: &StopHandle) -> Guest {
        Guest::new(self.clone(), bounds, stop.clone())
    }

    /// Returns to the system what ended guests have left in the pool, when it has no guest.
    pub(crate) fn return_memory(&self) {
        self.shared.pool.return_memory();
    }

    fn pooled(&self) -> Option<&Loaded> {
        if self.shared.pooled.get().is_none() {
            self.loaded().ok()?;
        }
        self.shared.pooled.get()?.as_ref()
    }

    fn unpooled(&self) -> Option<&Loaded> {
        if let Some(loaded) = self.shared.unpooled.get() {
            return Some(loaded);
        }
        // What fails is not kept: a moment without memory is no reason to fail for good.
        let engine = Engine::new(&self.shared.engine.unpooled()).ok()?;
        let loaded = Loaded::load(engine, self.shared.image, Bytes::Copied).ok()?;
        Some(self.shared.unpooled.get_or_init(|| loaded))
    }

    fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    fn clock(&self) -> Clock {
        self.shared.clock
    }
}

fn unloadable(image: GuestImage, why: String) -> SandboxError {
    SandboxError::Unloadable {
        name: image.name.to_owned(),
        why,
    }
}

fn digest_of(image: &GuestImage) -> Option<Digest> {
    Digest::parse(&format!("sha256:{}", image.digest))
}

impl EngineSettings {
    fn unpooled(self) -> Config {
        let mut config = cage::config();
        config.max_wasm_stack(self.stack_bytes);
        // Not used; the engine only wants it to be no smaller.
        config.async_stack_size(self.stack_bytes.max(2 * 1024 * 1024));
        image::in_place(&mut config);
        config
    }

    fn pooling(self) -> Config {
        let keep_resident = if PoolingAllocationConfig::is_pagemap_scan_available() {
            KEEP_WRITTEN_BYTES
        } else {
            KEEP_FIRST_BYTES
        };
        let mut pool = PoolingAllocationConfig::new();
        pool.total_core_instances(self.pooled_max)
            .total_memories(self.pooled_max)
            .total_tables(self.pooled_max)
            .max_memories_per_module(1)
            .max_tables_per_module(1)
            .table_elements(TABLE_ELEMENTS_MAX)
            // Where the kernel can say which pages were written, only those are restored:
            // without it a whole image is copied after each guest, at ten times the cost.
            .pagemap_scan(Enabled::Auto)
            .linear_memory_keep_resident(keep_resident)
            .table_keep_resident(TABLE_ELEMENTS_MAX * size_of::<usize>());
        let mut config = self.unpooled();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        config
    }
}
