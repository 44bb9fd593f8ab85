//! The demo server: a small log store and a ticket tracker, over stdin and stdout in both eras. Its
//! initial content is always the same.

mod logs;
mod protocol;
mod slow_calls;
mod tickets;
mod tools;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::upstream::jsonrpc::{self, IncomingMessage};
use crate::upstream::lines::{Line, Lines};
use protocol::DemoServer;
use slow_calls::SlowCalls;
use tools::ToolReply;

const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
const OUTBOX_MESSAGES: usize = 1_024;

/// Serves on stdin and stdout until stdin ends.
pub async fn serve() -> std::io::Result<()> {
    serve_over(tokio::io::stdin(), tokio::io::stdout()).await
}

/// Serves until the input ends. Answers that are still delayed then are dropped.
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
    let mut server = DemoServer::default();
    let mut waiting = SlowCalls::new(outbox.clone());
    let mut lines = Lines::new(input, LINE_BYTES_MAX);
    while let Some(line) = lines.next().await? {
        let Line::Whole(line) = line else { continue };
        match jsonrpc::parse(line) {
            IncomingMessage::Request { id, method, params } => {
                match server.answer(id, &method, params) {
                    ToolReply::Now(bytes) => {
                        // The writer ends only if the output is closed.
                        let _ = outbox.send(bytes).await;
                    }
                    ToolReply::After(delay, bytes) => waiting.start(id.get(), delay, bytes).await,
                }
            }
            IncomingMessage::Notification { method, params }
                if method == "notifications/cancelled" =>
            {
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
