//! The answer as a stream of events, and taking it up again when it breaks.

use std::time::Duration;

use airlock_core::outcome::LostCause;
use reqwest::Response;
use reqwest::header::{HeaderName, HeaderValue};

use super::{HttpLink, plain};
use crate::upstream::era::Era;
use crate::upstream::jsonrpc::Answer;
use crate::upstream::link::LinkError;
use crate::upstream::sse::SseReader;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const RESUMES_MAX: usize = 16;
/// Before a broken stream is taken up again, unless the server names a time.
const RESUME_AFTER: Duration = Duration::from_millis(250);

impl HttpLink {
    /// Reads until the answer comes. A stream that breaks before is taken up
    /// again where the older era allows it: the server has named its events.
    /// How long all that may take is the caller's to say.
    pub(super) async fn read_events(
        &self,
        response: Response,
        id: u64,
    ) -> Result<Answer, LinkError> {
        let mut reader = SseReader::new(self.0.message_bytes_max);
        let mut stream = response;
        for _ in 0..=RESUMES_MAX {
            let broken = match self.next_answer(stream, id, &mut reader).await {
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
        Err(LinkError::disconnected("the stream broke again and again"))
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

    async fn resume(&self, reader: &SseReader) -> Option<Response> {
        let event = HeaderValue::from_str(reader.last_id()?).ok()?;
        tokio::time::sleep(reader.retry().unwrap_or(RESUME_AFTER)).await;
        let request = self.0.client.get(self.0.url.url().clone());
        let response = self
            .with_headers(request)
            .header(LAST_EVENT, event)
            .send()
            .await
            .ok()?;
        response.status().is_success().then_some(response)
    }

    async fn next_answer(
        &self,
        mut response: Response,
        id: u64,
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
                if let Some(answer) = self.hear(&event.data, id) {
                    return Ok(Some(answer));
                }
            }
        }
    }
}
