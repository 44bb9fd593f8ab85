//! The limits before there are any.

use sandbox_protocol::GuestLimits;

/// The limits of a run that has not been told its own.
pub const NONE_YET: GuestLimits = GuestLimits {
    console_bytes_max: 0,
    console_flood_bytes_max: 0,
    args_bytes_max: 0,
    value_bytes_max: 0,
    json_depth_max: 64,
    recursion_max: 512,
};
