//! The connections of all hosts: how many may be open, and how long one may take to
//! say what it wants. What is answered, and a stream that is silent, may take as long
//! as it needs.

use std::io;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::post;

/// After a connection could not be taken for want of descriptors.
const BREATH: Duration = Duration::from_millis(100);
/// Whoever is sent away hears why before the connection is gone: so many at once, for so long.
const LEAVING_MAX: usize = 64;
const LEAVING_WALL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For the head of a request, from the moment on at which the connection has nothing else
    /// to do.
    pub head: Duration,
    /// For its body.
    pub body: Duration,
    pub connections_max: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(60),
            body: Duration::from_secs(60),
            connections_max: connections_max(),
        }
    }
}

/// Descriptors are needed for servers, journals and files too.
fn connections_max() -> usize {
    const MAX: u64 = 4_096;
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (descriptors / 2).clamp(1, MAX) as usize
}

/// Serves until `ended` is done, and then until the last answer is on its way.
pub(super) async fn serve(
    listener: TcpListener,
    routes: Router,
    patience: Patience,
    ended: impl Future<Output = ()>,
) -> io::Result<()> {
    let (ending, end) = watch::channel(false);
    let (mut open, mut leaving) = (JoinSet::new(), JoinSet::new());
    tokio::pin!(ended);
    loop {
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            Some(_) = open.join_next() => continue,
            () = &mut ended => break,
        };
        let stream = match taken {
            Ok((stream, _)) => stream,
            Err(error) if is_gone(&error) => continue,
            Err(_) => {
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        while open.try_join_next().is_some() || leaving.try_join_next().is_some() {}
        if open.len() < patience.connections_max {
            open.spawn(speak(stream, routes.clone(), patience, end.clone()));
        } else if leaving.len() < LEAVING_MAX {
            leaving.spawn(timeout(LEAVING_WALL, send_away(stream)));
        }
    }
    drop(listener);
    ending.send_replace(true);
    while open.join_next().await.is_some() {}
    Ok(())
}

/// The host hung up before it was taken: nobody else waits for that.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// What comes meanwhile is read and thrown away: a connection that is closed with something unread
/// is reset, and its answer is lost with it.
async fn send_away(mut stream: TcpStream) -> io::Result<()> {
    let why = post::error_body("too many connections are open; come again later");
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 10\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        why.len()
    );
    stream.write_all(&[head.as_bytes(), &why].concat()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(())
}

/// Answers what comes over one connection.
async fn speak(
    stream: TcpStream,
    routes: Router,
    patience: Patience,
    mut end: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    tokio::pin!(connection);
    let ended = async {
        let _ = end.wait_for(|it| *it).await;
    };
    tokio::select! {
        _ = &mut connection => return,
        () = ended => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
