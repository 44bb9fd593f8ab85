//! Lets connections in: so many at one time, and each for as long as it is
//! being answered. Whoever sends its request a byte at a time, or none, is cut.

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

/// A browser opens about six; further ones wait until one is over.
pub(super) const VISITORS_MAX: usize = 32;
/// Longer than a request for news stays open.
pub(super) const UNANSWERED_WALL: Duration = Duration::from_secs(30);
/// Before accepting again when it has failed, mostly for want of file handles.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

pub(super) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    unanswered_wall: Duration,
}

impl Door {
    pub(super) fn new(listener: TcpListener, visitors_max: usize, unanswered: Duration) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(visitors_max)),
            unanswered_wall: unanswered,
        }
    }
}

impl Listener for Door {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            // Nobody closes it.
            return std::future::pending().await;
        };
        loop {
            if let Ok((stream, address)) = self.listener.accept().await {
                let visitor = Visitor {
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

/// A connection that is cut when nothing was answered on it for so long.
pub(super) struct Visitor {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
    wall: Duration,
    cut: Pin<Box<Sleep>>,
}

impl AsyncRead for Visitor {
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

impl AsyncWrite for Visitor {
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
        // Whoever does not read what it asked for is cut like one who does not ask.
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

    /// A server behind a door, and where it is.
    async fn open(visitors_max: usize, unanswered: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = Door::new(listener, visitors_max, unanswered);
        let address = door.local_addr().unwrap();
        let routes = Router::new().route("/", get(|| async { "here" }));
        tokio::spawn(async move { axum::serve(door, routes).await });
        address
    }

    async fn rest(stream: &mut TcpStream) -> Vec<u8> {
        let mut said = Vec::new();
        // A reset ends it as well as a close.
        let _ = stream.read_to_end(&mut said).await;
        said
    }

    #[tokio::test]
    async fn who_does_not_finish_a_request_is_cut() {
        let address = open(4, SHORT).await;
        for beginning in [
            "",
            "GET / HT",
            "POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nab",
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // It may be cut before it has said even that.
            let _ = stream.write_all(beginning.as_bytes()).await;
            let said = rest(&mut stream).await;
            assert!(!said.ends_with(b"here"), "{beginning}");
        }
    }

    #[tokio::test]
    async fn one_more_than_there_are_places_waits_until_one_is_free() {
        let address = open(1, Duration::from_secs(60)).await;
        let first = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        let request = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        second.write_all(request.as_bytes()).await.unwrap();
        let early = tokio::time::timeout(SHORT, second.readable()).await;
        assert!(early.is_err(), "it is served beside the first");
        drop(first);
        assert!(rest(&mut second).await.ends_with(b"here"));
    }
}
