//! Serves the connections of all hosts. Limits how many connections are open, and how long a
//! request may take to arrive. Answers and idle streams have no time limit here.

use std::io;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::response::error_body;
use crate::serve::settings::ConnectionLimits;

/// Pause after a connection could not be accepted because no file descriptor was left.
const BREATH: Duration = Duration::from_millis(100);
/// Limits for refused connections, which get a response with the reason: how many at the same time,
/// and how long each may take.
const LEAVING_MAX: usize = 64;
const LEAVING_WALL: Duration = Duration::from_secs(1);

/// Serves until `ended` completes, and then until the last answer is sent.
pub(super) async fn serve(
    listener: TcpListener,
    routes: Router,
    patience: ConnectionLimits,
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

/// Whether the client disconnected before its connection was accepted. Such an error needs no
/// pause.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Refuses a connection with a 503. Incoming bytes are read and discarded: closing a connection
/// with unread bytes resets it, and the client would lose the answer.
async fn send_away(mut stream: TcpStream) -> io::Result<()> {
    let why = error_body("too many connections are open; try again later");
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

/// Answers the requests of one connection.
async fn speak(
    stream: TcpStream,
    routes: Router,
    patience: ConnectionLimits,
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
