//! Reads answers from a stream of events, and resumes the stream when it breaks.

use std::time::Duration;

use airlock_core::outcome::LostCause;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};

use super::{HttpLink, innermost_cause};
use crate::upstream::era::Era;
use crate::upstream::jsonrpc::Answer;
use crate::upstream::outgoing::LinkError;
use crate::upstream::server_request::CallOrigin;
use crate::upstream::sse::SseReader;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Maximum number of consecutive failed attempts to resume a stream.
const FAILURES_MAX: usize = 4;
/// Pause before a broken stream is resumed, unless the server sets one.
const RESUME_AFTER: Duration = Duration::from_millis(250);
const RESUME_AFTER_MIN: Duration = Duration::from_millis(100);
const RESUME_AFTER_MAX: Duration = Duration::from_secs(30);

impl HttpLink {
    /// Reads events until the answer arrives. In the older era, a broken stream is resumed if the
    /// server sent event ids. The caller limits the total time.
    pub(super) async fn read_events(
        &self,
        response: Response,
        id: u64,
        origin: Option<&CallOrigin>,
    ) -> Result<Answer, LinkError> {
        let mut reader = SseReader::new(self.0.message_bytes_max);
        let mut stream = response;
        loop {
            let broken = match self.next_answer(stream, id, origin, &mut reader).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => LinkError::disconnected("the stream ended before the answer"),
                Err(error) => error,
            };
            if !self.may_resume(&broken) {
                return Err(broken);
            }
            stream = match self.resume(&reader).await {
                Some(stream) => stream,
                None => return Err(broken),
            };
            reader.restart();
        }
    }

    /// Reads a server's messages that are unrelated to any request, in the older era, until the
    /// server ends the stream. The messages belong to no call, so any request among them is
    /// refused.
    pub(crate) async fn attend(
        &self,
        reader: &mut SseReader,
        opened: impl FnOnce(),
    ) -> Result<(), LinkError> {
        let request = self.0.client.get(self.0.url.url().clone());
        let mut request = self.with_headers(request);
        let event = reader.last_id().map(HeaderValue::from_str);
        if let Some(Ok(event)) = event {
            request = request.header(LAST_EVENT, event);
        }
        let response = request.send().await;
        let response =
            response.map_err(|error| LinkError::disconnected(innermost_cause(&error)))?;
        let status = response.status();
        if !status.is_success() || !is_events(&response) {
            return Err(self.status_error(status, "no stream outside of requests"));
        }
        opened();
        reader.restart();
        // No request has the id 0.
        self.next_answer(response, 0, None, reader).await?;
        Ok(())
    }

    pub(crate) fn reader(&self) -> SseReader {
        SseReader::new(self.0.message_bytes_max)
    }

    fn may_resume(&self, broken: &LinkError) -> bool {
        let disconnected = matches!(
            broken,
            LinkError::Lost {
                cause: LostCause::Disconnected,
                ..
            }
        );
        disconnected && self.era() == Some(Era::Legacy)
    }

    /// Requests the rest of the stream, after the pause that the server set.
    async fn resume(&self, reader: &SseReader) -> Option<Response> {
        let event = HeaderValue::from_str(reader.last_id()?).ok()?;
        let pause = reader.retry().unwrap_or(RESUME_AFTER);
        for _ in 0..FAILURES_MAX {
            tokio::time::sleep(pause.clamp(RESUME_AFTER_MIN, RESUME_AFTER_MAX)).await;
            let request = self.0.client.get(self.0.url.url().clone());
            let request = self.with_headers(request).header(LAST_EVENT, event.clone());
            match request.send().await {
                Ok(response) if response.status().is_success() => {
                    return is_events(&response).then_some(response);
                }
                // The server refuses to resume the stream. Only a 5xx error may be temporary and
                // causes another attempt.
                Ok(response) if !response.status().is_server_error() => return None,
                Ok(_) | Err(_) => {}
            }
        }
        None
    }

    async fn next_answer(
        &self,
        mut response: Response,
        id: u64,
        origin: Option<&CallOrigin>,
        reader: &mut SseReader,
    ) -> Result<Option<Answer>, LinkError> {
        loop {
            let chunk = response
                .chunk()
                .await
                .map_err(|error| LinkError::disconnected(innermost_cause(&error)))?;
            let Some(chunk) = chunk else { return Ok(None) };
            let events = reader
                .push(&chunk)
                .map_err(|_| LinkError::too_large(self.0.message_bytes_max))?;
            for event in events {
                if let Some(answer) = self.handle_message(&event.data, id, origin) {
                    return Ok(Some(answer));
                }
            }
        }
    }
}

/// Whether the response is a stream of events.
pub(super) fn is_events(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
}
