//! What a server asks of the host in the middle of a call, on its way there and
//! back. Scripts never answer it, and never see what was said.

mod remark;
mod time;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use airlock_core::id::ServerName;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

pub use airlock_core::inquiry::Wants;
pub use remark::{LogLevel, Remark, Remarks};
pub use time::{Still, Time};

/// What was said is on its way. Dropping it withdraws the inquiry.
pub type Carrying<'a> = Pin<Box<dyn Future<Output = Said> + Send + 'a>>;

/// Whoever brings inquiries of servers before a host, and what it says back.
pub trait Carrier: Send + Sync {
    /// Servers are told that so much can be asked, and nothing else is carried.
    fn abilities(&self) -> Abilities;

    /// A name of the host that nobody else's carrier has. A server that goes on with a call of
    /// this host which was given up may then ask something in a later one. Without a name, the
    /// host is taken for another one in each run.
    fn host(&self) -> Option<Arc<str>> {
        None
    }

    /// Whoever has to wait before the inquiry can be put lets its time stand still until then.
    fn carry(&self, inquiry: Inquiry, time: Time) -> Carrying<'_>;

    /// Where what servers log goes; none where nobody wants to hear it.
    fn remarks(&self) -> Option<Remarks> {
        None
    }
}

/// What can be asked of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    /// A form that the person fills in.
    pub form: bool,
    /// An address that the person opens.
    pub address: bool,
    /// A text of its model.
    pub sampling: bool,
    /// The same with tools of the server, which the server runs itself.
    pub sampling_tools: bool,
    /// The folders that it works in.
    pub roots: bool,
}

/// What servers are told that can be asked, from when it is known.
pub type Declared = watch::Receiver<Option<Abilities>>;

/// One inquiry, cut down to what the protocol has for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Inquiry {
    pub server: ServerName,
    pub wants: Wants,
    /// As the server wrote them; its texts may hold anything.
    pub params: Value,
    /// What the server calls it among all that it wants at once, where its era has that.
    pub key: Option<String>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// Nobody said anything.
    Nothing,
}

impl Abilities {
    /// All that there are.
    pub const ALL: Self = Self {
        form: true,
        address: true,
        sampling: true,
        sampling_tools: true,
        roots: true,
    };

    /// What a host says of itself as a client. Elicitation without a mode is by form.
    #[must_use]
    pub fn of(capabilities: &Value) -> Self {
        let object = |name: &str| capabilities.get(name).and_then(Value::as_object);
        let elicitation = object("elicitation");
        let mode = |mode: &str| elicitation.is_some_and(|it| it.contains_key(mode));
        let sampling = object("sampling");
        Self {
            form: mode("form") || elicitation.is_some_and(Map::is_empty),
            address: mode("url"),
            sampling: sampling.is_some(),
            sampling_tools: sampling.is_some_and(|it| it.contains_key("tools")),
            roots: object("roots").is_some(),
        }
    }

    /// The same, as we say it to servers.
    #[must_use]
    pub fn declared(self) -> Value {
        let modes = [("form", self.form), ("url", self.address)];
        let modes: Map<_, _> = present(modes);
        let with: Map<_, _> = present([("tools", self.sampling_tools)]);
        let mut declared = Map::new();
        if !modes.is_empty() {
            declared.insert("elicitation".into(), modes.into());
        }
        if self.sampling {
            declared.insert("sampling".into(), with.into());
        }
        if self.roots {
            declared.insert("roots".into(), json!({}));
        }
        declared.into()
    }

    /// For a broker that knows it from the start.
    #[must_use]
    pub fn from_now_on(self) -> Declared {
        watch::channel(Some(self)).1
    }

    /// What both have.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self {
            form: self.form && other.form,
            address: self.address && other.address,
            sampling: self.sampling && other.sampling,
            sampling_tools: self.sampling_tools && other.sampling_tools,
            roots: self.roots && other.roots,
        }
    }

    #[must_use]
    pub fn has(self, wants: Wants) -> bool {
        match wants {
            Wants::Form => self.form,
            Wants::Address => self.address,
            Wants::Sampling => self.sampling,
            Wants::Roots => self.roots,
        }
    }
}

fn present<const N: usize>(named: [(&str, bool); N]) -> Map<String, Value> {
    let present = named.into_iter().filter(|(_, there)| *there);
    present
        .map(|(name, _)| (name.to_owned(), json!({})))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_can_is_read_from_its_capabilities_and_said_in_the_same_words() {
        let form = Abilities {
            form: true,
            ..Abilities::default()
        };
        for (capabilities, expected) in [
            (json!({}), Abilities::default()),
            (json!({"elicitation": {}}), form),
            (json!({"elicitation": {"form": {}}}), form),
            (
                json!({"elicitation": true, "sampling": []}),
                Abilities::default(),
            ),
            (
                json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}),
                Abilities::ALL,
            ),
            (
                json!({"elicitation": {"url": {}}, "sampling": {}}),
                Abilities {
                    address: true,
                    sampling: true,
                    ..Abilities::default()
                },
            ),
        ] {
            let read = Abilities::of(&capabilities);
            assert_eq!(read, expected, "{capabilities}");
            assert_eq!(Abilities::of(&read.declared()), expected, "{capabilities}");
        }
    }
}
