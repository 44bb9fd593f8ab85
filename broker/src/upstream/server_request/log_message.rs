//! Parses servers' notifications and log messages within limits. Log messages go to the origin of
//! the call.

use airlock_core::json::{self, Bounds};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CallOrigin, OpenServerRequests};
use crate::client_bridge::{LogLevel, LogMessage};
use crate::secrets::Secrets;
use crate::upstream::diagnostics::Diagnostics;
use crate::upstream::notifications;

/// Bounds of a log message. Larger messages are dropped.
const BOUNDS: Bounds = Bounds {
    bytes_max: 64 * 1024,
    depth_max: 32,
    nodes_max: 5_000,
};

/// Handles a notification of a server. A log message is dropped if its call is unclear.
pub(crate) fn notified(
    method: &str,
    params: Option<&RawValue>,
    diagnostics: &Diagnostics,
    under_way: &OpenServerRequests,
    origin: impl FnOnce() -> Option<CallOrigin>,
) {
    diagnostics.notification(method);
    match method {
        "notifications/cancelled" => under_way.cancelled(params),
        "notifications/message" => {
            if let Some(origin) = origin() {
                origin.log_message(params, diagnostics.secrets());
            }
        }
        "notifications/subscriptions/acknowledged" => {
            diagnostics.acknowledge(notifications::promised(params));
        }
        _ => {
            if let Some(told) = notifications::of_notification(method, params) {
                diagnostics.tell(told);
            }
        }
    }
}

impl CallOrigin {
    /// Returns the lowest log level that the origin wants.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.router.log_sink.as_ref().map(|it| it.level())
    }

    /// Passes a log message to the host. Invalid messages are dropped.
    fn log_message(&self, params: Option<&RawValue>, secrets: &Secrets) {
        let Some(log_sink) = &self.router.log_sink else {
            return;
        };
        let read = params.and_then(|raw| json::read(raw.get().as_bytes(), BOUNDS).ok());
        let Some(Value::Object(mut params)) = read else {
            return;
        };
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        let Some(level) = text("level").and_then(LogLevel::from_word) else {
            return;
        };
        let logger = text("logger").map(|it| secrets.redact(it).unwrap_or_else(|| it.to_owned()));
        let mut data = params.remove("data").unwrap_or_default();
        secrets.redact_value(&mut data);
        log_sink.add(LogMessage {
            server: self.server.clone(),
            level,
            logger,
            data,
        });
    }
}
