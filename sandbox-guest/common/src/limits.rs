//! The limits of a guest before its run sets others.

use sandbox_protocol::GuestLimits;

/// Limits of a guest that has not received the limits of its run.
pub const NONE_YET: GuestLimits = GuestLimits {
    console_bytes_max: 0,
    console_flood_bytes_max: 0,
    args_bytes_max: 0,
    value_bytes_max: 0,
    json_depth_max: 64,
    recursion_max: 512,
};
