//! The sandbox: loads a guest, starts it, resumes it and stops it. No other crate of the broker uses
//! `wasmtime`. [`budget`] bounds all runs together.
//!
//! A guest runs on the thread that calls it, and only during a call; a waiting guest costs only
//! memory. It imports nothing. Its output is the frame of its [`sandbox_protocol::Step`], whose
//! position and length are checked before a byte is read. Every failure inside the guest ends it,
//! and is returned as a [`airlock_core::effect::GuestStop`].
//!
//! The calling thread needs at least 2 MiB of stack, which threads have by default. The checker,
//! which parses scripts, runs in a separate Wasmtime engine on threads with a larger stack.

mod bounds;
pub mod budget;
mod checker;
pub mod clock;
mod differences;
mod engine;
mod guest;
mod image;
mod instance;
mod large_pages;
pub mod large_stack;
mod memory;
mod pool;
mod reader;
mod second_look;
mod shadow_stack;
mod single_pages;
mod stop_handle;
pub mod thread_priority;
mod ticker;
pub mod units;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use airlock_core::id::Digest;
use guest_image::GuestImage;
use thiserror::Error;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

pub use bounds::GuestBounds;
pub use checker::memory_bytes_max as check_bytes_max;
pub use checker::{CheckLimits, Checker};
pub use differences::{Comparison, DIFFERENCES, EngineDifference};
pub use engine::JsEngine;
pub use guest::Guest;
use image::{ImageBytes, LoadedImage};
pub use large_stack::spawn as spawn_large;
use pool::Pool;
pub use stop_handle::StopHandle;

use crate::clock::Clock;

/// Maximum bytes of a pooled memory that stay resident between two guests, on kernels that report
/// which pages were written. Only written pages count, and pages beyond the maximum are returned to
/// the system. Few scripts write more.
const KEEP_WRITTEN_BYTES: usize = 2 * 1024 * 1024;
/// The bytes of a pooled memory that stay resident on other kernels. They are the first bytes of
/// the memory: the shadow stack and the initialised data after it.
const KEEP_FIRST_BYTES: usize = 12 * 1024 * 1024;

const TABLE_ELEMENTS_MAX: usize = 65_536;

#[derive(Debug, Error)]
pub enum SandboxError {
    #[error("the guest image `{name}` cannot be loaded: {why}")]
    Unloadable { name: String, why: String },
    #[error(
        "the initial memory of the guest `{name}` is larger than the maximum file size of this process"
    )]
    FilesTooSmall { name: String },
    #[error("this build of airlock does not contain the engine `{0}`")]
    NotCarried(JsEngine),
    #[error("the guest image `{name}` has the wrong digest {found}")]
    WrongDigest { name: String, found: Digest },
    #[error("the guest `{name}` imports `{import}`; a guest imports nothing")]
    Imports { name: String, import: String },
    #[error("the guest `{name}` has no export `{export}` of the expected type")]
    ExportMissing { name: String, export: &'static str },
}

/// A loaded guest image, from which guests are made. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<SandboxState>,
}

struct SandboxState {
    image: GuestImage,
    engine: EngineSettings,
    bytes: ImageBytes,
    digest: Digest,
    clock: Clock,
    /// Held while the image is loaded.
    loading: Mutex<()>,
    /// Set once the image is loaded. Contains `None` if there is no pool.
    pooled: OnceLock<Option<LoadedImage>>,
    /// The image for guests outside the pool. Used if a guest does not fit into the pool, or if
    /// there is no pool.
    unpooled: OnceLock<LoadedImage>,
    pool: Pool,
}

/// The settings in which the engines for scripts and for the checker differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EngineSettings {
    /// Maximum stack in bytes that a guest may use on the thread that calls it.
    stack_bytes: usize,
    /// Maximum number of live guests in the pool. Memory for further guests is allocated outside
    /// the pool, which takes some microseconds for each guest.
    pooled_max: u32,
}

impl EngineSettings {
    const SCRIPTS: Self = Self {
        stack_bytes: wasmtime_config::GUEST_STACK_BYTES,
        pooled_max: 1_100,
    };
    /// A checker lives only briefly, so few exist at the same time.
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
    /// Loads a guest that this program contains. Its bytes are part of the program and are not
    /// hashed again. It is loaded once per process and shared from then on.
    pub fn load_embedded(engine: JsEngine) -> Result<Self, SandboxError> {
        let sandbox = Self::embedded(engine)?;
        sandbox.loaded()?;
        Ok(sandbox)
    }

    /// Returns a guest that this program contains. It is loaded when [`Self::loaded`] is called or
    /// the first guest is created.
    pub fn embedded(engine: JsEngine) -> Result<Self, SandboxError> {
        static EMBEDDED: Mutex<BTreeMap<JsEngine, Sandbox>> = Mutex::new(BTreeMap::new());
        let mut embedded = EMBEDDED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = embedded.get(&engine) {
            return Ok(sandbox.clone());
        }
        let image = engine.image().ok_or(SandboxError::NotCarried(engine))?;
        let sandbox = Self::trusted(image, ImageBytes::InPlace, EngineSettings::SCRIPTS)?;
        embedded.insert(engine, sandbox.clone());
        Ok(sandbox)
    }

    /// Returns the guest that parses scripts. It is loaded when it is first needed.
    fn checker() -> Result<Self, SandboxError> {
        static CHECKER: OnceLock<Sandbox> = OnceLock::new();
        if let Some(checker) = CHECKER.get() {
            return Ok(checker.clone());
        }
        let settings = EngineSettings::CHECKER;
        let checker = Self::trusted(guest_image::CHECKER, ImageBytes::InPlace, settings)?;
        Ok(CHECKER.get_or_init(|| checker).clone())
    }

    fn is_checker(&self) -> bool {
        self.shared.engine == EngineSettings::CHECKER
    }

    /// Loads an image from another source. Its code is trusted, so its digest must have been fixed
    /// beforehand.
    pub fn load(image: GuestImage) -> Result<Self, SandboxError> {
        let found = Digest::sha256(image.precompiled);
        if digest_of(&image) != Some(found) {
            return Err(SandboxError::WrongDigest {
                name: image.name.to_owned(),
                found,
            });
        }
        let sandbox = Self::trusted(image, ImageBytes::Copied, EngineSettings::SCRIPTS)?;
        sandbox.loaded()?;
        Ok(sandbox)
    }

    fn trusted(
        image: GuestImage,
        bytes: ImageBytes,
        engine: EngineSettings,
    ) -> Result<Self, SandboxError> {
        let digest = digest_of(&image)
            .ok_or_else(|| unloadable(image, "the digest is not a valid SHA-256".to_owned()))?;
        Ok(Self {
            shared: Arc::new(SandboxState {
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

    /// Loads the image, and returns when guests can be created. Blocks the thread. A failure is not
    /// remembered, so a later call tries again.
    pub fn loaded(&self) -> Result<(), SandboxError> {
        let SandboxState {
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
        // Without enough address space for a pool, the memory of each guest is allocated
        // separately.
        let pooled = Engine::new(&engine.pooling())
            .ok()
            .map(|engine| LoadedImage::load(engine, image, bytes));
        let pooled = pooled.transpose()?;
        if pooled.is_none() {
            let engine = Engine::new(&engine.unpooled());
            let engine = engine.map_err(|why| unloadable(image, format!("{why:#}")))?;
            let _ = self
                .shared
                .unpooled
                .set(LoadedImage::load(engine, image, bytes)?);
        }
        let _ = self.shared.pooled.set(pooled);
        Ok(())
    }

    pub fn name(&self) -> &str {
        self.shared.image.name
    }

    /// Returns the JavaScript engine, if this guest is one that scripts can choose.
    pub fn engine(&self) -> Option<JsEngine> {
        JsEngine::of_name(self.name())
    }

    /// Returns the digest that identifies this guest.
    pub fn digest(&self) -> Digest {
        self.shared.digest
    }

    /// Returns the size of compiled code and initialised memory in bytes.
    pub fn image_bytes(&self) -> usize {
        self.shared.image.precompiled.len()
    }

    /// Returns the imports of the loaded module. The list is empty, because an image with imports
    /// is not loaded.
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

    /// Creates a guest that has not been started.
    pub fn guest(&self, bounds: GuestBounds, stop: &StopHandle) -> Guest {
        Guest::new(self.clone(), bounds, stop.clone())
    }

    /// Gives the memory that ended guests have left in the pool back to the system, if no guest is
    /// in the pool.
    pub fn return_memory(&self) {
        self.shared.pool.return_memory();
    }

    fn pooled(&self) -> Option<&LoadedImage> {
        if self.shared.pooled.get().is_none() {
            self.loaded().ok()?;
        }
        self.shared.pooled.get()?.as_ref()
    }

    fn unpooled(&self) -> Option<&LoadedImage> {
        if let Some(loaded) = self.shared.unpooled.get() {
            return Some(loaded);
        }
        // A failure is not remembered, because a short lack of memory must not disable guests for
        // good.
        let engine = Engine::new(&self.shared.engine.unpooled()).ok()?;
        let loaded = LoadedImage::load(engine, self.shared.image, ImageBytes::Copied).ok()?;
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
        let mut config = wasmtime_config::config();
        config.max_wasm_stack(self.stack_bytes);
        // airlock uses no async stack, but Wasmtime requires one as large as the Wasm stack.
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
            // If the kernel can report which pages were written, only those are restored. Otherwise
            // a whole image is copied after each guest, which takes ten times as long.
            .pagemap_scan(Enabled::Auto)
            .linear_memory_keep_resident(keep_resident)
            .table_keep_resident(TABLE_ELEMENTS_MAX * size_of::<usize>());
        let mut config = self.unpooled();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        config
    }
}
