//! A log message of a server, as it came: read within bounds, for whoever stands
//! behind the call.

use airlock_core::json::{self, Bounds};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Behind, UnderWay};
use crate::carrier::{LogLevel, Remark};
use crate::config::Secrets;
use crate::upstream::diagnostics::Diagnostics;
use crate::upstream::news;

/// What is larger is not passed on.
const BOUNDS: Bounds = Bounds {
    bytes_max: 64 * 1024,
    depth_max: 32,
    nodes_max: 5_000,
};

/// What a server says without asking anything. Where nothing says whose call a log message is
/// about, nobody is told.
pub(crate) fn notified(
    (method, params): (&str, Option<&RawValue>),
    diagnostics: &Diagnostics,
    under_way: &UnderWay,
    behind: impl FnOnce() -> Option<Behind>,
) {
    diagnostics.notification(method);
    match method {
        "notifications/cancelled" => under_way.cancelled(params),
        "notifications/message" => {
            if let Some(behind) = behind() {
                behind.remark(params, diagnostics.secrets());
            }
        }
        "notifications/subscriptions/acknowledged" => {
            diagnostics.acknowledge(news::promised(params));
        }
        _ => {
            if let Some(told) = news::of_notification(method, params) {
                diagnostics.tell(told);
            }
        }
    }
}

impl Behind {
    /// From which level on somebody wants to hear what is logged.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.desk.remarks.as_ref().map(|it| it.level())
    }

    /// Takes what a server has logged to the host; whatever is no log message is none.
    fn remark(&self, params: Option<&RawValue>, secrets: &Secrets) {
        let Some(remarks) = &self.desk.remarks else {
            return;
        };
        let read = params.and_then(|raw| json::read(raw.get().as_bytes(), BOUNDS).ok());
        let Some(Value::Object(mut params)) = read else {
            return;
        };
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        let Some(level) = text("level").and_then(LogLevel::of) else {
            return;
        };
        let logger = text("logger").map(|it| secrets.strike(it).unwrap_or_else(|| it.to_owned()));
        let mut data = params.remove("data").unwrap_or_default();
        secrets.strike_value(&mut data);
        remarks.add(Remark {
            server: self.server.clone(),
            level,
            logger,
            data,
        });
    }
}
