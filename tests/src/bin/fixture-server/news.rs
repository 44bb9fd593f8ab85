//! The server's notifications, for hosts that want them: log messages, and changes of its tools,
//! prompts and resources.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{answer, send};

/// The number of reports of progress of one call.
const PARTS: u32 = 500;

const LEVELS: [&str; 4] = ["debug", "info", "warning", "error"];
const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

pub(crate) struct News {
    is_newer: bool,
    /// Minimum level of log messages in the older era.
    level: usize,
    subscribed: BTreeSet<String>,
    /// Listeners of the newer era, with the notifications that they want.
    listening: Vec<(Value, Value)>,
}

pub(crate) fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "logging": {},
    })
}

impl News {
    pub(crate) fn new(is_newer: bool) -> Self {
        Self {
            is_newer,
            level: 1,
            subscribed: BTreeSet::new(),
            listening: Vec::new(),
        }
    }

    pub(crate) fn is_about(&self, method: &str) -> bool {
        match method {
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => !self.is_newer,
            "subscriptions/listen" => self.is_newer,
            _ => false,
        }
    }

    /// Handles a request about notifications.
    pub(crate) fn hear(&mut self, id: &Value, method: &str, params: &Value) -> std::io::Result<()> {
        let uri = || params["uri"].as_str().unwrap_or_default().to_owned();
        match method {
            "logging/setLevel" => self.level = level(&params["level"]),
            "resources/subscribe" => {
                self.subscribed.insert(uri());
            }
            "resources/unsubscribe" => {
                self.subscribed.remove(&uri());
            }
            _ => {
                let wanted = params["notifications"].clone();
                let params = json!({"_meta": {SUBSCRIPTION_KEY: id}, "notifications": wanted});
                self.listening.push((id.clone(), wanted));
                return tell("notifications/subscriptions/acknowledged", params);
            }
        }
        answer(id, &json!({}))
    }

    /// Sends one log message of each level that the host wants.
    pub(crate) fn log(&self, params: &Value) -> std::io::Result<()> {
        let from = match params["_meta"].get(LEVEL_KEY) {
            Some(wanted) => level(wanted),
            None if self.is_newer => LEVELS.len(),
            None => self.level,
        };
        for level in LEVELS.iter().skip(from) {
            let data = json!({"text": format!("a line of {level}\u{200b}")});
            let params = json!({"level": level, "logger": "fixture", "data": data});
            tell("notifications/message", params)?;
        }
        Ok(())
    }

    /// Reports a change of every list and resource.
    pub(crate) fn change(&self) -> std::io::Result<()> {
        if !self.is_newer {
            tell("notifications/prompts/list_changed", json!({}))?;
            tell("notifications/resources/list_changed", json!({}))?;
            return self.subscribed.iter().try_for_each(|uri| {
                tell("notifications/resources/updated", json!({ "uri": uri }))
            });
        }
        for (id, wanted) in &self.listening {
            let meta = json!({ SUBSCRIPTION_KEY: id });
            for kind in ["prompts", "resources"] {
                if wanted[format!("{kind}ListChanged")] == true {
                    let method = format!("notifications/{kind}/list_changed");
                    tell(&method, json!({ "_meta": meta }))?;
                }
            }
            for uri in wanted["resourceSubscriptions"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let params = json!({"_meta": meta, "uri": uri});
                tell("notifications/resources/updated", params)?;
            }
        }
        Ok(())
    }
}

fn level(word: &Value) -> usize {
    let at = LEVELS.iter().position(|it| word == it);
    at.unwrap_or(LEVELS.len())
}

fn tell(method: &str, params: Value) -> std::io::Result<()> {
    send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// Reports that the person has finished at the address.
pub(crate) fn opened() -> std::io::Result<()> {
    let params = json!({"elicitationId": "theirs"});
    tell("notifications/elicitation/complete", params)
}

/// Reports the progress of a call to a client that wants it, in many steps.
pub(crate) fn progress(params: &Value) -> std::io::Result<()> {
    let Some(token) = params["_meta"].get("progressToken") else {
        return Ok(());
    };
    for done in 1..=PARTS {
        let message = format!("part {done}\u{200b}");
        let params = json!({
            "progressToken": token, "progress": done, "total": PARTS, "message": message,
        });
        tell("notifications/progress", params)?;
    }
    // A report of another call, with a number that no report of this call has.
    tell(
        "notifications/progress",
        json!({"progressToken": "other", "progress": 7007}),
    )
}
