//! The Wasmtime configuration for compiling and running guests. The image builder compiles with it,
//! and the broker loads with it; Wasmtime refuses a module that was compiled with different
//! settings.

use wasmtime::Config;

/// Size in bytes of the stack that a guest may use on the thread that calls it. The thread needs at
/// least twice as much.
pub const GUEST_STACK_BYTES: usize = 1024 * 1024;

/// Size of the shadow stack inside the guest's memory. The stack is at the very beginning, so that
/// an overflow is an access out of bounds and not a write into data.
pub const SHADOW_STACK_BYTES: usize = 4 * 1024 * 1024;

/// Address space reserved for each guest's memory: the whole 32-bit range, so that no access needs
/// a bounds check.
const MEMORY_RESERVATION_BYTES: u64 = 4 * 1024 * 1024 * 1024;
const MEMORY_GUARD_BYTES: u64 = 32 * 1024 * 1024;

/// Returns the settings that compiling and running must share. The host adds its own, such as
/// limits and the allocation strategy.
pub fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(false)
        .memory_reservation(MEMORY_RESERVATION_BYTES)
        .memory_guard_size(MEMORY_GUARD_BYTES)
        .memory_init_cow(true)
        .memory_guaranteed_dense_image_size(64 * 1024 * 1024)
        .table_lazy_init(true)
        .signals_based_traps(true)
        .generate_address_map(false)
        .native_unwind_info(false)
        .max_wasm_stack(GUEST_STACK_BYTES)
        .wasm_bulk_memory(true)
        .wasm_multi_value(true)
        .wasm_simd(true)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_extended_const(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false);
    config
}
