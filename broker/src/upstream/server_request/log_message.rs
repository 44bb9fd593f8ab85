//! Parses servers' notifications, log messages and reports of progress within limits. Messages and
//! reports go to the origin of the call.

use airlock_core::json::{self, Bounds};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CallOrigin, OpenServerRequests};
use crate::client_bridge::{CallProgress, LogLevel, LogMessage};
use crate::secrets::Secrets;
use crate::upstream::diagnostics::Diagnostics;
use crate::upstream::notifications;

/// Bounds of a log message. Larger messages are dropped.
const BOUNDS: Bounds = Bounds {
    bytes_max: 64 * 1024,
    depth_max: 32,
    nodes_max: 5_000,
};

/// Handles a notification of a server. A log message is dropped if its call is unclear. `origin`
/// returns the call that a notification belongs to, by its progress token if it has one.
pub(crate) fn notified(
    method: &str,
    params: Option<&RawValue>,
    diagnostics: &Diagnostics,
    under_way: &OpenServerRequests,
    origin: impl FnOnce(Option<&str>) -> Option<CallOrigin>,
) {
    diagnostics.notification(method);
    match method {
        "notifications/cancelled" => under_way.cancelled(params),
        "notifications/message" => {
            if let Some(origin) = origin(None) {
                origin.log_message(params, diagnostics.secrets());
            }
        }
        "notifications/progress" => progressed(params, diagnostics.secrets(), origin),
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

/// Passes a report of progress to the host. Invalid reports, and those of unknown calls, are dropped.
fn progressed(
    params: Option<&RawValue>,
    secrets: &Secrets,
    origin: impl FnOnce(Option<&str>) -> Option<CallOrigin>,
) {
    let read = params.and_then(|raw| json::read(raw.get().as_bytes(), BOUNDS).ok());
    let Some(params) = read else { return };
    let token = params.get("progressToken").and_then(Value::as_str);
    let number = |key: &str| params.get(key).and_then(Value::as_f64);
    let (Some(token), Some(progress)) = (token, number("progress")) else {
        return;
    };
    let origin = origin(Some(token)).filter(|it| it.progress_token().as_deref() == Some(token));
    let Some(origin) = origin else { return };
    let message = params.get("message").and_then(Value::as_str);
    let message = message.map(|it| secrets.redact(it).unwrap_or_else(|| it.to_owned()));
    if let Some(sink) = &origin.router.progress_sink {
        sink.add(CallProgress {
            server: origin.server.clone(),
            call: origin.call,
            progress,
            total: number("total"),
            message,
        });
    }
}

impl CallOrigin {
    /// Returns the token with which the server reports the progress of this call, if the host wants
    /// reports.
    pub(crate) fn progress_token(&self) -> Option<String> {
        self.router.progress_sink.as_ref()?;
        Some(format!("{}-{}", self.router.number, self.call.0))
    }

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
