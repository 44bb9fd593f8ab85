//! Reads and writes the basic elements of all messages: fixed little-endian numbers, and bytes
//! after their length.

use std::fmt;

/// Why bytes are not a valid message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodecError {
    /// The message was written for another version of the protocol.
    WrongVersion { found: u32 },
    /// Another kind of message was expected: a start, resume or step.
    WrongKind { found: u8 },
    /// The bytes end in the middle of `what`.
    Truncated { what: &'static str },
    /// `what` has an unknown tag.
    UnknownTag { what: &'static str, tag: u8 },
    /// `what` is not UTF-8.
    NotText { what: &'static str },
    /// The message is complete, and `bytes` more bytes follow.
    Trailing { bytes: usize },
    /// The message is well-formed, but it does not answer the request.
    Unexpected,
    /// More than [`super::FRAME_BYTES_MAX`], or a part whose length cannot be encoded.
    TooLarge,
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongVersion { found } => {
                write!(f, "protocol version {found}, expected {}", crate::VERSION)
            }
            Self::WrongKind { found } => write!(f, "unexpected kind of message: {found}"),
            Self::Truncated { what } => write!(f, "the message ends inside its {what}"),
            Self::UnknownTag { what, tag } => write!(f, "unknown tag {tag} of {what}"),
            Self::NotText { what } => write!(f, "{what} is not UTF-8"),
            Self::Trailing { bytes } => write!(f, "{bytes} bytes follow the message"),
            Self::Unexpected => write!(f, "the message does not answer the request"),
            Self::TooLarge => write!(f, "the message exceeds the maximum size"),
        }
    }
}

impl std::error::Error for CodecError {}

#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    overflown: bool,
}

impl Writer {
    pub fn new(kind: u8) -> Self {
        let mut writer = Self::bare(Vec::with_capacity(256));
        writer.u32(crate::VERSION);
        writer.u8(kind);
        writer
    }

    /// Creates a writer that appends to `bytes` and writes no version.
    pub fn bare(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            overflown: false,
        }
    }

    pub fn finish(self) -> Result<Vec<u8>, CodecError> {
        if self.overflown || self.bytes.len() > super::FRAME_BYTES_MAX {
            return Err(CodecError::TooLarge);
        }
        Ok(self.bytes)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn count(&mut self, count: usize) {
        match u32::try_from(count) {
            Ok(count) => self.u32(count),
            Err(_) => self.overflown = true,
        }
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.uncounted(bytes);
    }

    /// Appends bytes whose length was already written.
    pub fn uncounted(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
}

#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Checks size, version and kind.
    pub fn new(frame: &'a [u8], kind: u8) -> Result<Self, CodecError> {
        let (found, reader) = Self::open(frame)?;
        if found != kind {
            return Err(CodecError::WrongKind { found });
        }
        Ok(reader)
    }

    /// Checks size and version, and returns the kind.
    pub fn open(frame: &'a [u8]) -> Result<(u8, Self), CodecError> {
        if frame.len() > super::FRAME_BYTES_MAX {
            return Err(CodecError::TooLarge);
        }
        let mut reader = Self::bare(frame);
        let version = reader.u32("version")?;
        if version != crate::VERSION {
            return Err(CodecError::WrongVersion { found: version });
        }
        Ok((reader.u8("kind")?, reader))
    }

    /// Creates a reader at the beginning of `rest`, which has no version.
    pub fn bare(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn finish(self) -> Result<(), CodecError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(CodecError::Trailing { bytes }),
        }
    }

    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], CodecError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(CodecError::Truncated { what })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], CodecError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(CodecError::Truncated { what })?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, CodecError> {
        self.array::<1>(what).map(u8::from_le_bytes)
    }

    pub fn bool(&mut self, what: &'static str) -> Result<bool, CodecError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            tag => Err(CodecError::UnknownTag { what, tag }),
        }
    }

    pub fn u16(&mut self, what: &'static str) -> Result<u16, CodecError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32, CodecError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub fn u64(&mut self, what: &'static str) -> Result<u64, CodecError> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn length(&mut self, what: &'static str) -> Result<usize, CodecError> {
        usize::try_from(self.u32(what)?).map_err(|_| CodecError::TooLarge)
    }

    pub fn bytes(&mut self, what: &'static str) -> Result<Vec<u8>, CodecError> {
        self.borrowed(what).map(<[u8]>::to_vec)
    }

    pub fn borrowed(&mut self, what: &'static str) -> Result<&'a [u8], CodecError> {
        let length = self.length(what)?;
        self.take(length, what)
    }

    pub fn text(&mut self, what: &'static str) -> Result<String, CodecError> {
        let length = self.length(what)?;
        let taken = self.take(length, what)?;
        std::str::from_utf8(taken)
            .map(str::to_owned)
            .map_err(|_| CodecError::NotText { what })
    }

    /// Reads a text without copying it.
    pub fn borrowed_text(&mut self, what: &'static str) -> Result<&'a str, CodecError> {
        std::str::from_utf8(self.borrowed(what)?).map_err(|_| CodecError::NotText { what })
    }

    /// Reads a sequence. The count reserves no memory: the vector grows only with the items that
    /// are really present.
    pub fn sequence<T>(
        &mut self,
        what: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, CodecError>,
    ) -> Result<Vec<T>, CodecError> {
        let count = self.length(what)?;
        if count > self.rest.len() {
            return Err(CodecError::Truncated { what });
        }
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }
}
