//! The answer as a stream of events, and taking it up again when it breaks.

use std::time::Duration;

use airlock_core::outcome::LostCause;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};

use super::{HttpLink, plain};
use crate::upstream::era::Era;
use crate::upstream::inquiry::Behind;
use crate::upstream::jsonrpc::Answer;
use crate::upstream::link::LinkError;
use crate::upstream::sse::SseReader;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Attempts to take a stream up again that fail one after the other.
const FAILURES_MAX: usize = 4;
/// Before a broken stream is taken up again, unless the server names a time.
const RESUME_AFTER: Duration = Duration::from_millis(250);
const RESUME_AFTER_MIN: Duration = Duration::from_millis(100);
const RESUME_AFTER_MAX: Duration = Duration::from_secs(30);

impl HttpLink {
    /// Reads until the answer comes. A stream that breaks before is taken up
    /// again where the older era allows it: the server has named its events.
    /// How long all that may take is the caller's to say.
    pub(super) async fn read_events(
        &self,
        response: Response,
        id: u64,
        behind: Option<&Behind>,
    ) -> Result<Answer, LinkError> {
        let mut reader = SseReader::new(self.0.message_bytes_max);
        let mut stream = response;
        loop {
            let broken = match self.next_answer(stream, (id, behind), &mut reader).await {
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

    /// What a server of the older era tells outside of all requests, until it ends the stream.
    /// Nobody stands behind it: whatever it asks there is refused.
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
        let response = response.map_err(|error| LinkError::disconnected(plain(&error)))?;
        let status = response.status();
        if !status.is_success() || !is_events(&response) {
            return Err(self.status_error(status, "it has no stream of its own"));
        }
        opened();
        reader.restart();
        // No request of ours has this number.
        self.next_answer(response, (0, None), reader).await?;
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

    /// The rest of the stream, after the time that the server wants to be left alone.
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
                // It does not want to; a gateway or a server in trouble may, later.
                Ok(response) if !response.status().is_server_error() => return None,
                Ok(_) | Err(_) => {}
            }
        }
        None
    }

    async fn next_answer(
        &self,
        mut response: Response,
        (id, behind): (u64, Option<&Behind>),
        reader: &mut SseReader,
    ) -> Result<Option<Answer>, LinkError> {
        loop {
            let chunk = response
                .chunk()
                .await
                .map_err(|error| LinkError::disconnected(plain(&error)))?;
            let Some(chunk) = chunk else { return Ok(None) };
            let events = reader
                .push(&chunk)
                .map_err(|_| LinkError::too_large(self.0.message_bytes_max))?;
            for event in events {
                if let Some(answer) = self.hear(&event.data, id, behind) {
                    return Ok(Some(answer));
                }
            }
        }
    }
}

/// Whether what follows is a stream of events.
pub(super) fn is_events(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
}
