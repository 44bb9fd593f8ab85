//! Accepts a limited number of connections. A connection is closed if nothing is answered on it for
//! some time, for example because the client sends its request slowly or not at all.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Maximum number of open connections. A browser opens about six; further connections wait.
pub(super) const VISITORS_MAX: usize = 32;
/// Maximum time without an answer on a connection. Requests for updates stay open for less time.
pub(super) const UNANSWERED_WALL: Duration = Duration::from_secs(30);
/// Pause after an error of `accept`, which usually means that file descriptors are used up.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

pub(super) struct LimitedListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
    unanswered_wall: Duration,
}

impl LimitedListener {
    pub(super) fn new(listener: TcpListener, visitors_max: usize, unanswered: Duration) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(visitors_max)),
            unanswered_wall: unanswered,
        }
    }
}

impl Listener for LimitedListener {
    type Io = LimitedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedStream, SocketAddr) {
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            // The semaphore is never closed.
            return std::future::pending().await;
        };
        loop {
            if let Ok((stream, address)) = self.listener.accept().await {
                let visitor = LimitedStream {
                    stream,
                    _place: place,
                    wall: self.unanswered_wall,
                    cut: Box::pin(tokio::time::sleep(self.unanswered_wall)),
                };
                return (visitor, address);
            }
            tokio::time::sleep(ACCEPT_AGAIN).await;
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that is closed if nothing is answered on it within the time limit.
pub(super) struct LimitedStream {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
    wall: Duration,
    cut: Pin<Box<Sleep>>,
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.cut.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() {
            let until = Instant::now() + self.wall;
            self.cut.as_mut().reset(until);
            return written;
        }
        // A client that does not read its answer is disconnected like one that sends no request.
        match self.cut.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    /// Starts a server behind this listener and returns its address.
    async fn open(visitors_max: usize, unanswered: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = LimitedListener::new(listener, visitors_max, unanswered);
        let address = door.local_addr().unwrap();
        let routes = Router::new().route("/", get(|| async { "here" }));
        tokio::spawn(async move { axum::serve(door, routes).await });
        address
    }

    async fn rest(stream: &mut TcpStream) -> Vec<u8> {
        let mut said = Vec::new();
        // A reset ends the connection like a close.
        let _ = stream.read_to_end(&mut said).await;
        said
    }

    #[tokio::test]
    async fn unfinished_request_is_disconnected() {
        let address = open(4, SHORT).await;
        for beginning in [
            "",
            "GET / HT",
            "POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nab",
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // The server may close the connection before all of this is sent.
            let _ = stream.write_all(beginning.as_bytes()).await;
            let said = rest(&mut stream).await;
            assert!(!said.ends_with(b"here"), "{beginning}");
        }
    }

    #[tokio::test]
    async fn connection_beyond_limit_waits_for_free_slot() {
        let address = open(1, Duration::from_secs(60)).await;
        let first = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        let request = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        second.write_all(request.as_bytes()).await.unwrap();
        let early = tokio::time::timeout(SHORT, second.readable()).await;
        assert!(early.is_err(), "served beside the first connection");
        drop(first);
        assert!(rest(&mut second).await.ends_with(b"here"));
    }
}
