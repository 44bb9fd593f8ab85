//! Tests the clients: functions of a host as tools of scripts, approvals, cancellation, progress,
//! large values and crashes, and agents of several frameworks with a scripted model on loopback.

mod node;
