//! Parses server-sent events: takes bytes and returns the data of events, within a size limit.

use std::time::Duration;

/// Maximum length of an event id, which is sent back to the server in a header.
const ID_BYTES_MAX: usize = 1024;

/// One event with data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    pub(crate) data: Vec<u8>,
}

/// An event exceeds the size limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEventTooLarge;

/// Parses a stream as it arrives; a chunk may end anywhere.
#[derive(Debug)]
pub(crate) struct SseReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
    event_bytes_max: usize,
    /// The id of the last event, for resuming the stream.
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl SseReader {
    pub(crate) fn new(event_bytes_max: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            event_bytes_max,
            last_id: None,
            retry: None,
        }
    }

    /// Drops the incomplete event: the next chunk belongs to a new stream, which continues after
    /// the last complete event.
    pub(crate) fn restart(&mut self) {
        *self = Self {
            last_id: self.last_id.take(),
            retry: self.retry,
            ..Self::new(self.event_bytes_max)
        };
    }

    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns the pause that the server wants before the stream is resumed.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the events that this chunk completes.
    pub(crate) fn push(&mut self, mut chunk: &[u8]) -> Result<Vec<SseEvent>, SseEventTooLarge> {
        let mut events = Vec::new();
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                chunk = chunk.get(1..).unwrap_or_default();
                continue;
            }
            let end = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (piece, rest) = chunk
                .split_at_checked(end.unwrap_or(chunk.len()))
                .unwrap_or((chunk, &[]));
            if self.line.len() + self.data.len() + piece.len() > self.event_bytes_max {
                return Err(SseEventTooLarge);
            }
            self.line.extend_from_slice(piece);
            if let Some(ending) = rest.first() {
                self.after_return = *ending == b'\r';
                events.extend(self.end_line());
            }
            chunk = rest.get(1..).unwrap_or_default();
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let complete = std::mem::take(&mut self.has_data) && !data.is_empty();
            return complete.then_some(SseEvent { data });
        }
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(line.len());
        let (field, value) = line.split_at_checked(colon).unwrap_or((&line, &[]));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) && value.len() <= ID_BYTES_MAX => {
                self.last_id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let ms = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                self.retry = ms.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, chunk_bytes: usize) -> (Vec<String>, Option<String>) {
        let mut reader = SseReader::new(64);
        let mut seen = Vec::new();
        for chunk in text.as_bytes().chunks(chunk_bytes) {
            for event in reader.push(chunk).unwrap() {
                seen.push(String::from_utf8(event.data).unwrap());
            }
        }
        (seen, reader.last_id().map(ToOwned::to_owned))
    }

    #[test]
    fn events_do_not_depend_on_chunking_or_line_endings() {
        let text = ": hello\nid: 1\ndata:\n\nevent: message\ndata: {\"a\":\ndata: 1}\n\nid:2\ndata:x\n\ndata: lost";
        for ending in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', ending);
            for size in [1, 2, 3, 7, 1000] {
                let (events, last_id) = read(&text, size);
                assert_eq!(events, ["{\"a\":\n1}", "x"], "{ending:?} {size}");
                assert_eq!(last_id.as_deref(), Some("2"));
            }
        }
    }

    #[test]
    fn resumed_stream_keeps_last_id_and_drops_partial_event() {
        let mut reader = SseReader::new(64);
        assert_eq!(reader.push(b"retry: 1500\nid: 7\ndata: half").unwrap(), []);
        reader.restart();
        assert_eq!(
            (reader.last_id(), reader.retry()),
            (Some("7"), Some(Duration::from_millis(1_500)))
        );
        let events = reader.push(b"data: whole\n\nretry: soon\n").unwrap();
        assert_eq!(
            events,
            [SseEvent {
                data: b"whole".to_vec()
            }]
        );
        assert_eq!(reader.retry(), Some(Duration::from_millis(1_500)));
    }

    #[test]
    fn oversized_event_is_refused_and_overlong_id_ignored() {
        let mut reader = SseReader::new(64);
        let refused = reader
            .push(b"data: {\"id\":5,")
            .and_then(|_| reader.push(&[b'x'; 100]));
        assert_eq!(refused, Err(SseEventTooLarge));

        let mut reader = SseReader::new(10_000);
        let long = "x".repeat(ID_BYTES_MAX + 1);
        assert_eq!(
            reader.push(format!("id: 7\nid: {long}\n").as_bytes()),
            Ok(vec![])
        );
        assert_eq!(reader.last_id(), Some("7"));
    }
}
