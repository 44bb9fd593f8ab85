//! What a server has besides tools: its prompts, its resources, completions. Asked
//! for by method, and read as a whole within bounds.

use airlock_core::json::{self, Bounds};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::diagnostics::lock;
use super::jsonrpc::Answer;
use super::server::Server;
use super::wall::Wall;
use super::watching::{TooMany, Watched};

/// One request that is no call of a tool.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) method: &'static str,
    pub(crate) params: Map<String, Value>,
    /// What the `Mcp-Name` header repeats.
    pub(crate) name: Option<String>,
    /// Of the result, beside the bound that all results have.
    pub(crate) bytes_max: usize,
}

/// A result, and how long its text was.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fetched {
    pub(crate) value: Value,
    pub(crate) bytes: usize,
}

/// Why there is no result. Texts are masked and whole: cut before all credentials are struck,
/// they could end in half of one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unfetched {
    /// The server says no.
    Refused { code: i64, message: String },
    /// It cannot be reached, or what it said cannot be read.
    Failed(String),
    /// Nothing arrived: it is not connected, or not any more.
    Ended(String),
}

impl Server {
    /// Over the connection that there is: whoever asks sees to one.
    pub(crate) async fn fetch(&self, fetch: &Fetch, wall: &Wall) -> Result<Fetched, Unfetched> {
        let late = |_| Unfetched::Failed("it took too long".to_owned());
        let place = wall.limit(self.places.acquire()).await.map_err(late)?;
        let _place = place.map_err(|_| Unfetched::Failed("the broker is closing".to_owned()))?;
        // From here on nobody ends the connection for want of calls.
        let Some(connection) = wall.limit(self.connected()).await.map_err(late)? else {
            return Err(Unfetched::Ended("its connections end at once".to_owned()));
        };
        *lock(&self.used) = Instant::now();
        let answer = connection.fetch(fetch, wall).await;
        *lock(&self.used) = Instant::now();
        let ended = self.note_end(&connection, &answer).await;
        match answer {
            Ok(answer) => self.fetched(&answer, fetch.bytes_max),
            Err(error) => {
                let why = self.masked(&error.why());
                Err(if ended {
                    Unfetched::Ended(why)
                } else {
                    Unfetched::Failed(why)
                })
            }
        }
    }

    /// From when the server has said that it tells of a resource, until it is dropped.
    pub(crate) async fn watch(&self, uri: &str, wall: &Wall) -> Result<Watched, Unfetched> {
        let many =
            |TooMany(max)| Unfetched::Failed(format!("{max} of its resources are watched already"));
        let watched = self.watching.watch(uri).map_err(many)?;
        let late = |_| Unfetched::Failed("it took too long".to_owned());
        match wall.limit(watched.standing()).await.map_err(late)? {
            None => Ok(watched),
            Some(error) => Err(Unfetched::Refused {
                code: error.code,
                message: self.masked(&error.message),
            }),
        }
    }

    fn fetched(&self, answer: &Answer, bytes_max: usize) -> Result<Fetched, Unfetched> {
        let failed = |why: String| Err(Unfetched::Failed(why));
        let result = match answer {
            Answer::Result(result) => result,
            Answer::Error(error) => {
                return Err(Unfetched::Refused {
                    code: error.code,
                    message: self.masked(&error.message),
                });
            }
            Answer::Unreadable(why) => return failed(self.masked(why)),
        };
        let bytes = result.get().len();
        let bytes_max = self.caps.result_bytes_max.min(bytes_max);
        let bounds = Bounds {
            bytes_max: u32::try_from(bytes_max).unwrap_or(u32::MAX),
            depth_max: 64,
            nodes_max: 500_000,
        };
        match json::read(result.get().as_bytes(), bounds) {
            Ok(value) if value.is_object() => Ok(Fetched { value, bytes }),
            Ok(_) => failed("its answer is not an object".to_owned()),
            Err(bad) => failed(format!("its answer is {bad}")),
        }
    }
}
