//! What a server has besides tools: its prompts, its resources, completions. Asked
//! for by method, and read as a whole within bounds.

use std::sync::Arc;

use airlock_core::json::{self, Bounds};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::diagnostics::lock;
use super::jsonrpc::Answer;
use super::link::LinkError;
use super::server::Server;
use super::wall::Wall;

/// One request that is no call of a tool.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) method: &'static str,
    pub(crate) params: Map<String, Value>,
    /// What the `Mcp-Name` header repeats.
    pub(crate) name: Option<String>,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unfetched {
    /// The server says no; its text is masked.
    Refused { code: i64, message: String },
    /// It cannot be reached, or what it said cannot be read.
    Failed(String),
}

impl Server {
    pub(crate) async fn fetch(
        self: &Arc<Self>,
        fetch: &Fetch,
        wall: &Wall,
    ) -> Result<Value, Unfetched> {
        let late = |_| Unfetched::Failed("it took too long".to_owned());
        let place = wall.limit(self.places.acquire()).await.map_err(late)?;
        let _place = place.map_err(|_| Unfetched::Failed("the broker is closing".to_owned()))?;
        *lock(&self.used) = Instant::now();
        let answer = self.fetch_once_more(fetch, wall).await;
        *lock(&self.used) = Instant::now();
        match answer.map_err(|error| Unfetched::Failed(self.shown(&error.why())))? {
            Answer::Result(result) => {
                let bounds = Bounds {
                    bytes_max: u32::try_from(self.caps.result_bytes_max).unwrap_or(u32::MAX),
                    depth_max: 64,
                    nodes_max: 500_000,
                };
                match json::read(result.get().as_bytes(), bounds) {
                    Ok(value) if value.is_object() => Ok(value),
                    Ok(_) => Err(Unfetched::Failed("what it said is no object".to_owned())),
                    Err(bad) => Err(Unfetched::Failed(format!("what it said is {bad}"))),
                }
            }
            Answer::Error(error) => Err(Unfetched::Refused {
                code: error.code,
                message: self.shown(&error.message),
            }),
            Answer::Unreadable(why) => Err(Unfetched::Failed(self.shown(&why))),
        }
    }

    /// Asking changes nothing, and so is repeated where the connection had ended.
    async fn fetch_once_more(
        self: &Arc<Self>,
        fetch: &Fetch,
        wall: &Wall,
    ) -> Result<Answer, LinkError> {
        let mut first = true;
        loop {
            let connection = match wall.limit(self.connection()).await {
                Ok(Ok(connection)) => connection,
                Ok(Err(error)) => return Err(LinkError::disconnected(error.to_string())),
                Err(_) => return Err(LinkError::timed_out(wall.within())),
            };
            let answer = connection.fetch(fetch, wall).await;
            let ended = match &answer {
                Err(LinkError::SessionGone) => true,
                Err(LinkError::NotSent { .. }) => connection.link.is_closed(),
                _ => false,
            };
            if !(ended && std::mem::take(&mut first)) {
                return answer;
            }
            let _ = wall.limit(self.forget(&connection)).await;
        }
    }
}
