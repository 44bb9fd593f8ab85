//! The demo server: a small log store and a ticket tracker, spoken to over
//! stdin and stdout in both eras. Its content is always the same.

mod logs;
mod speak;
mod tickets;
mod tools;
mod waiting;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::upstream::jsonrpc::{self, Incoming};
use crate::upstream::lines::{Line, Lines};
use speak::Desk;
use tools::Told;
use waiting::Waiting;

const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
const OUTBOX_MESSAGES: usize = 1_024;

/// Serves on stdin and stdout until stdin ends.
pub async fn serve() -> std::io::Result<()> {
    serve_over(tokio::io::stdin(), tokio::io::stdout()).await
}

/// Serves until the input ends. What still waits then is dropped.
pub async fn serve_over(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<()> {
    let (outbox, queue) = mpsc::channel(OUTBOX_MESSAGES);
    let writer = tokio::spawn(write_all(output, queue));
    let read = read_all(input, outbox).await;
    let written = writer
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)));
    read.and(written)
}

async fn read_all(
    input: impl AsyncRead + Unpin,
    outbox: mpsc::Sender<Vec<u8>>,
) -> std::io::Result<()> {
    let mut desk = Desk::default();
    let mut waiting = Waiting::new(outbox.clone());
    let mut lines = Lines::new(input, LINE_BYTES_MAX);
    while let Some(line) = lines.next().await? {
        let Line::Whole(line) = line else { continue };
        match jsonrpc::parse(line) {
            Incoming::Request { id, method, params } => {
                match desk.answer(id, &method, params) {
                    Told::Now(bytes) => {
                        // The writer ends only when nobody reads any more.
                        let _ = outbox.send(bytes).await;
                    }
                    Told::After(delay, bytes) => waiting.start(id.get(), delay, bytes).await,
                }
            }
            Incoming::Notification { method, params } if method == "notifications/cancelled" => {
                waiting.cancel(params);
            }
            _ => {}
        }
    }
    Ok(())
}

async fn write_all(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Vec<u8>>,
) -> std::io::Result<()> {
    while let Some(mut message) = queue.recv().await {
        message.push(b'\n');
        output.write_all(&message).await?;
        output.flush().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
