//! The one Wasmtime configuration that guests are compiled for and run in. The
//! factory compiles with it, the broker loads with it; Wasmtime refuses a
//! compiled module whose settings differ.

use wasmtime::Config;

/// Stack that a guest may use on the thread that calls it. The thread needs at
/// least twice as much.
pub const GUEST_STACK_BYTES: usize = 1024 * 1024;

/// The shadow stack inside the guest's memory, at its very beginning, so that
/// overflowing it is an access out of bounds and not a write into data.
pub const SHADOW_STACK_BYTES: usize = 4 * 1024 * 1024;

/// Address space kept for each guest's memory: all that 32 bits can reach, so
/// that no access needs a bounds check.
const MEMORY_RESERVATION_BYTES: u64 = 4 * 1024 * 1024 * 1024;
const MEMORY_GUARD_BYTES: u64 = 32 * 1024 * 1024;

/// Everything that compiling and running must agree on. Limits, allocation
/// strategy and the like are the host's own and come on top.
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
