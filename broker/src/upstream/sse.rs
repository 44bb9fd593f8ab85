//! Server-sent events: bytes in, the data of events out, within a cap.

use std::time::Duration;

/// An id goes back to the server as a header.
const ID_BYTES_MAX: usize = 1024;

/// One event that carries data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    pub(crate) data: Vec<u8>,
}

/// An event is larger than allowed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Takes a stream apart as it arrives; a chunk may end anywhere.
#[derive(Debug)]
pub(crate) struct SseReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
    event_bytes_max: usize,
    /// The id of the last event, to go on behind it after the stream broke.
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

    /// Forgets what was begun: the next chunk is of another stream, which goes
    /// on behind the last event.
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

    /// How long the server wants us to wait before the stream is taken up again.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The events that this chunk completes.
    pub(crate) fn push(&mut self, mut chunk: &[u8]) -> Result<Vec<SseEvent>, TooLarge> {
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
                return Err(TooLarge);
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
    fn events_are_the_same_however_the_stream_is_cut_and_its_lines_are_ended() {
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
    fn a_stream_that_is_taken_up_again_keeps_its_place_and_nothing_half_read() {
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
    fn an_event_that_is_too_large_is_refused_and_an_id_that_is_too_long_is_not_kept() {
        let mut reader = SseReader::new(64);
        let refused = reader
            .push(b"data: {\"id\":5,")
            .and_then(|_| reader.push(&[b'x'; 100]));
        assert_eq!(refused, Err(TooLarge));

        let mut reader = SseReader::new(10_000);
        let long = "x".repeat(ID_BYTES_MAX + 1);
        assert_eq!(
            reader.push(format!("id: 7\nid: {long}\n").as_bytes()),
            Ok(vec![])
        );
        assert_eq!(reader.last_id(), Some("7"));
    }
}
