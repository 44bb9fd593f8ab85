//! The signed heads of ended runs. Each state directory has an Ed25519 key and an index: a file of
//! JSON lines, one per ended run. A line holds the head of the run's journal, the digest of the line
//! before, and a signature, so that neither a journal nor the index can be rewritten without the
//! key.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use airlock_core::id::{Digest, RunId};
use airlock_core::json::{self, Bounds};
use airlock_core::problem::Problem;
use airlock_core::report::Status;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use codegen::canonical;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::private_file::{self, StateDir, make_private, open_to_write};

/// Version of the format of the index.
const VERSION: u32 = 1;
/// The signed bytes begin with this text, so that a signature cannot be used for anything else.
const SIGNED_BYTES_BEGIN: &[u8] = b"airlock run head\n";
const SEED_BYTES: usize = 32;
const PUBLIC_KEY_BYTES: usize = 32;
const PUBLIC_KEY_PREFIX: &str = "ed25519:";
/// Maximum size of a line in bytes. A line is about 500 bytes long.
const LINE_BYTES_MAX: u32 = 4_096;
/// How long to wait for another run that signs its head.
const LOCK_WALL: Duration = Duration::from_secs(10);

/// The public half of a signing key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; PUBLIC_KEY_BYTES]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `{PUBLIC_KEY_PREFIX}` and 32 bytes in base64")]
pub struct BadPublicKey;

/// One line of the index: the end of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedHead {
    pub v: u32,
    pub seq: u64,
    /// Digest of the previous line.
    pub prev: Option<Digest>,
    pub run: RunId,
    /// Digest of the last line of the run's journal.
    pub head: Digest,
    /// Number of lines of the run's journal.
    pub entries: u64,
    pub status: Status,
    /// The host's time, in milliseconds since the epoch.
    pub at_ms: u64,
    pub key: PublicKey,
    /// Signature of all other members, in base64.
    pub signature: String,
}

/// The end of a journal, before it is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalEnd {
    pub(crate) run: RunId,
    pub(crate) head: Digest,
    pub(crate) entries: u64,
    pub(crate) status: Status,
    pub(crate) at_ms: u64,
    /// Whether the end of the journal was synced to the disk.
    pub(crate) is_synced: bool,
}

/// A signed head, and the key of the previous line if its key differs.
#[derive(Debug)]
pub(crate) struct Signed {
    pub(crate) head: SignedHead,
    pub(crate) key_before: Option<PublicKey>,
}

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("{path} cannot be {verb}: {cause}")]
    Io {
        path: String,
        verb: &'static str,
        cause: io::Error,
    },
    #[error("{path} is damaged: {why}")]
    Broken { path: String, why: String },
}

/// The heads of an index whose chain is intact.
#[derive(Debug, Default)]
pub struct RunIndex {
    path: PathBuf,
    /// Length of the file when it was read.
    bytes: u64,
    by_run: BTreeMap<RunId, SignedHead>,
}

impl StateDir {
    fn key_path(&self) -> PathBuf {
        self.path().join("signing.key")
    }

    #[must_use]
    pub fn index_path(&self) -> PathBuf {
        self.path().join("index.jsonl")
    }

    /// Returns the public half of the signing key, which is created if it is missing.
    pub fn public_key(&self) -> Result<PublicKey, IndexError> {
        self.key_pair().map(|pair| public_key(&pair))
    }

    /// Returns the public half of the signing key, if there is one.
    pub fn existing_public_key(&self) -> Result<Option<PublicKey>, IndexError> {
        match std::fs::symlink_metadata(self.key_path()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            _ => self.public_key().map(Some),
        }
    }

    /// Signs bytes with the signing key. Returns the signature in base64.
    pub(crate) fn signature(&self, bytes: &[u8]) -> Result<String, IndexError> {
        let pair = self.key_pair()?;
        Ok(BASE64_STANDARD.encode(pair.sign(bytes)))
    }

    fn key_pair(&self) -> Result<Ed25519KeyPair, IndexError> {
        let path = self.key_path();
        let seed = private_file::read_or_create_secret(&path, SEED_BYTES);
        let seed = seed.map_err(failed(&path, "used as signing key"))?;
        Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|_| failed(&path, "used as signing key")(ErrorKind::InvalidData.into()))
    }
}

/// Appends the signed ends of runs to the index of one state directory.
///
/// Runs of this process wait for each other here, and not at the lock of the file, which looks only
/// every few milliseconds whether it is free. A line that this process wrote is not read again while
/// it is the last one.
#[derive(Default)]
pub(crate) struct IndexWriter(Mutex<Option<LastLine>>);

impl IndexWriter {
    /// Signs the end of a journal and appends it to the index.
    pub(crate) fn sign(&self, state: &StateDir, end: JournalEnd) -> Result<Signed, IndexError> {
        let pair = state.key_pair()?;
        let path = state.index_path();
        make_private(state.path()).map_err(failed(state.path(), "created"))?;
        // The wait for runs of this process counts too, so that a lock that stays taken delays each
        // run by the same time.
        let since = Instant::now();
        // After a panic the last line is read from the file.
        let mut written = self.0.lock().unwrap_or_else(|poisoned| {
            let mut written = poisoned.into_inner();
            *written = None;
            written
        });
        let lock = path.with_extension("lock");
        let left = LOCK_WALL.saturating_sub(since.elapsed());
        let _lock = private_file::lock(&lock, left).map_err(failed(&lock, "locked"))?;
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let mut file = open_to_write(&path, options).map_err(failed(&path, "written"))?;
        let position = FilePosition::of(&file).map_err(failed(&path, "read"))?;
        let before = match written.take() {
            Some(last) if last.position == position => Some(last),
            _ => last_line(&mut file, &path, position)?,
        };
        let is_synced = end.is_synced;
        let head = signed(end, before.as_ref(), &pair);
        let line = canonical::canonical(&serde_json::to_value(&head).unwrap_or_default());
        let position = FilePosition {
            bytes: before.as_ref().map_or(0, |it| it.position.bytes),
            ..position
        };
        append(&mut file, position, &line, is_synced).map_err(failed(&path, "written"))?;
        let key_before = before.map(|it| it.key);
        *written = Some(LastLine {
            seq: head.seq,
            key: head.key,
            digest: Digest::sha256(&line),
            position: FilePosition {
                bytes: position.bytes + line.len() as u64 + 1,
                ..position
            },
        });
        let key_before = key_before.filter(|key| *key != head.key);
        Ok(Signed { head, key_before })
    }
}

/// Writes a line to the end of a file whose last whole line ends at `position`.
fn append(file: &mut File, position: FilePosition, line: &[u8], is_synced: bool) -> io::Result<()> {
    // A crash during a write may have left a part of a line.
    if FilePosition::of(file)? != position {
        file.set_len(position.bytes)?;
    }
    file.write_all(&[line, b"\n"].concat())?;
    if is_synced {
        file.sync_data()?;
    }
    Ok(())
}

/// A file, and the number of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FilePosition {
    device: u64,
    inode: u64,
    bytes: u64,
}

impl FilePosition {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
        })
    }
}

/// The last whole line of an index.
struct LastLine {
    seq: u64,
    key: PublicKey,
    digest: Digest,
    /// The file up to the end of the line.
    position: FilePosition,
}

/// Reads the last whole line of an index, and checks its signature.
fn last_line(
    file: &mut File,
    path: &Path,
    position: FilePosition,
) -> Result<Option<LastLine>, IndexError> {
    let begin = position.bytes.saturating_sub(2 * u64::from(LINE_BYTES_MAX));
    let mut tail = Vec::new();
    let read = file.seek(io::SeekFrom::Start(begin));
    read.and_then(|_| file.read_to_end(&mut tail))
        .map_err(failed(path, "read"))?;
    let Some(end) = tail.iter().rposition(|b| *b == b'\n') else {
        return match begin {
            0 => Ok(None),
            _ => Err(broken(path, "the last line is too long".into())),
        };
    };
    let whole = tail.get(..end).unwrap_or_default();
    let line = whole.rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let head = parse(line).and_then(|head| head.check_signature().map(|()| head));
    let head = head.map_err(|why| broken(path, format!("the last line: {why}")))?;
    Ok(Some(LastLine {
        seq: head.seq,
        key: head.key,
        digest: Digest::sha256(line),
        position: FilePosition {
            bytes: begin + end as u64 + 1,
            ..position
        },
    }))
}

fn signed(end: JournalEnd, before: Option<&LastLine>, pair: &Ed25519KeyPair) -> SignedHead {
    let mut head = SignedHead {
        v: VERSION,
        seq: before.map_or(0, |it| it.seq + 1),
        prev: before.map(|it| it.digest),
        run: end.run,
        head: end.head,
        entries: end.entries,
        status: end.status,
        at_ms: end.at_ms,
        key: public_key(pair),
        signature: String::new(),
    };
    head.signature = BASE64_STANDARD.encode(pair.sign(&head.signed_bytes()));
    head
}

fn public_key(pair: &Ed25519KeyPair) -> PublicKey {
    let mut key = [0; PUBLIC_KEY_BYTES];
    key.iter_mut()
        .zip(pair.public_key().as_ref())
        .for_each(|(to, from)| *to = *from);
    PublicKey(key)
}

/// Parses one line.
fn parse(line: &[u8]) -> Result<SignedHead, String> {
    let bounds = Bounds {
        bytes_max: LINE_BYTES_MAX,
        depth_max: 4,
        nodes_max: 100,
    };
    let value = json::read(line, bounds).map_err(|bad| bad.to_string())?;
    if canonical::canonical(&value) != line {
        return Err("not in canonical form".into());
    }
    let head: SignedHead = serde_json::from_value(value).map_err(|error| error.to_string())?;
    if head.v != VERSION {
        return Err(format!(
            "unsupported version {}; expected {VERSION}",
            head.v
        ));
    }
    Ok(head)
}

impl SignedHead {
    /// Checks the signature against the key in the line.
    fn check_signature(&self) -> Result<(), String> {
        match self.key.has_signed(&self.signed_bytes(), &self.signature) {
            true => Ok(()),
            false => Err("the signature is not correct".into()),
        }
    }

    fn signed_bytes(&self) -> Vec<u8> {
        signed_bytes(SIGNED_BYTES_BEGIN, self)
    }
}

/// Returns the bytes of a line that are signed: `begin`, and all members but the signature in
/// canonical form.
pub(crate) fn signed_bytes(begin: &[u8], line: &impl Serialize) -> Vec<u8> {
    let mut value = serde_json::to_value(line).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        members.remove("signature");
    }
    let mut bytes = begin.to_vec();
    bytes.extend(canonical::canonical(&value));
    bytes
}

impl RunIndex {
    /// Reads an index and checks its chain. A missing file is an empty index. A part of a line at
    /// the end, as left by a crash, is ignored.
    pub fn read(path: &Path) -> Result<Self, IndexError> {
        match private_file::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            bytes => Self::parse(path, &bytes.map_err(failed(path, "read"))?),
        }
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<Self, IndexError> {
        let mut index = Self {
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            ..Self::default()
        };
        let (mut prev, mut seq) = (None, 0);
        let bad = |seq: u64, why: String| broken(path, format!("line {}: {why}", seq + 1));
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else {
                break;
            };
            let head = parse(line).map_err(|why| bad(seq, why))?;
            if head.seq != seq {
                return Err(bad(
                    seq,
                    format!("line number {}; expected {seq}", head.seq),
                ));
            }
            if head.prev != prev {
                return Err(bad(
                    seq,
                    "the digest of the previous line does not match".into(),
                ));
            }
            if let Some(twice) = index.by_run.insert(head.run.clone(), head) {
                return Err(bad(seq, format!("the run {} is signed twice", twice.run.0)));
            }
            (prev, seq) = (Some(Digest::sha256(line)), seq + 1);
        }
        Ok(index)
    }

    /// Returns the head of a run, after its signature was checked. The caller must check whether
    /// the key in the head is trusted.
    pub fn of_run(&self, run: &RunId) -> Result<Option<&SignedHead>, IndexError> {
        let Some(head) = self.by_run.get(run) else {
            return Ok(None);
        };
        let checked = head.check_signature();
        checked.map_err(|why| broken(&self.path, format!("line {}: {why}", head.seq + 1)))?;
        Ok(Some(head))
    }

    /// Returns whether the file still has the length that it had when it was read. Lines are only
    /// ever appended.
    pub(crate) fn is_current(&self, path: &Path) -> bool {
        let length = std::fs::symlink_metadata(path).map_or(0, |meta| meta.len());
        length == self.bytes
    }

    /// Returns the runs that the index has heads of.
    pub fn runs(&self) -> impl Iterator<Item = &RunId> {
        self.by_run.keys()
    }
}

impl PublicKey {
    /// Whether a signature in base64 is that of these bytes.
    pub(crate) fn has_signed(&self, bytes: &[u8], signature: &str) -> bool {
        let signature = BASE64_STANDARD.decode(signature);
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        signature.is_ok_and(|signature| key.verify(bytes, &signature).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_KEY_PREFIX}{}", BASE64_STANDARD.encode(self.0))
    }
}

impl FromStr for PublicKey {
    type Err = BadPublicKey;

    fn from_str(text: &str) -> Result<Self, BadPublicKey> {
        let base64 = text.trim().strip_prefix(PUBLIC_KEY_PREFIX);
        let bytes = BASE64_STANDARD.decode(base64.ok_or(BadPublicKey)?);
        let bytes = bytes.map_err(|_| BadPublicKey)?;
        bytes.try_into().map(Self).map_err(|_| BadPublicKey)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl IndexError {
    /// Converts the error for a person who verifies journals.
    pub(crate) fn into_problem(self) -> Problem {
        match &self {
            Self::Io { .. } => Problem::new(
                "journal-unreadable",
                "cannot read the signed ends of runs, or the signing key",
                self.to_string(),
                "check the files' permissions, and the path given with --index",
            ),
            Self::Broken { .. } => Problem::new(
                "journal-broken",
                "the file with the signed ends of runs does not verify",
                self.to_string(),
                "the file was changed or is damaged after airlock wrote it; put back a copy, because \
                 without it no journal can be compared with its signed end",
            ),
        }
    }
}

fn broken(path: &Path, why: String) -> IndexError {
    let path = path.display().to_string();
    IndexError::Broken { path, why }
}

pub(crate) fn failed(
    path: &Path,
    verb: &'static str,
) -> impl FnOnce(io::Error) -> IndexError + use<> {
    let path = path.display().to_string();
    move |cause| IndexError::Io { path, verb, cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::TempDir;

    fn end(number: usize, is_synced: bool) -> JournalEnd {
        JournalEnd {
            run: RunId(format!("r{number}").into()),
            head: Digest::sha256(b"head"),
            entries: 5,
            status: Status::Done,
            at_ms: 0,
            is_synced,
        }
    }

    /// Signs the ends of runs, and returns the median time of one in microseconds.
    fn median_us(
        (state, writer): (&StateDir, &IndexWriter),
        runs: std::ops::Range<usize>,
        is_synced: bool,
    ) -> u128 {
        let mut times: Vec<u128> = runs
            .map(|number| {
                let since = Instant::now();
                writer.sign(state, end(number, is_synced)).unwrap();
                since.elapsed().as_micros()
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    }

    /// `cargo xtask bench signing` runs this test in release mode and shows the table.
    #[test]
    fn time_to_sign_an_end_does_not_depend_on_the_length_of_the_index() {
        let scratch = TempDir::new();
        let state = StateDir::open(scratch.path().join("state")).unwrap();
        let index = (&state, &IndexWriter::default());
        let short = median_us(index, 0..200, false);
        median_us(index, 200..4_800, false);
        let long = median_us(index, 4_800..5_000, false);
        let synced = median_us(index, 5_000..5_050, true);
        println!("| signing the end of a run | median |");
        println!("| --- | ---: |");
        println!("| index of up to 200 runs | {short} µs |");
        println!("| index of 5,000 runs | {long} µs |");
        println!("| index of 5,000 runs, synced to the disk | {synced} µs |");
        assert!(long < 5 * short + 1_000, "{short} µs and {long} µs");
        let index = RunIndex::read(&state.index_path()).unwrap();
        assert_eq!(index.runs().count(), 5_050);
        let signed = index.of_run(&RunId("r4999".into())).unwrap().unwrap();
        assert_eq!(signed.seq, 4_999);
    }

    #[test]
    fn writers_continue_index_and_drop_partial_lines() {
        let scratch = TempDir::new();
        let state = StateDir::open(scratch.path().join("state")).unwrap();
        let path = state.index_path();
        let (one, other) = (IndexWriter::default(), IndexWriter::default());
        for number in 0..6 {
            let writer = if number % 3 == 2 { &other } else { &one };
            let signed = writer.sign(&state, end(number, false)).unwrap();
            assert_eq!(signed.head.seq, number as u64);
            if number % 2 == 1 {
                let mut file = OpenOptions::new().append(true).open(&path).unwrap();
                file.write_all(b"{\"v\":1,\"seq\"").unwrap();
            }
        }
        one.sign(&state, end(6, false)).unwrap();
        assert_eq!(RunIndex::read(&path).unwrap().runs().count(), 7);

        // Another file under the same name is read again.
        let copy = std::fs::read(&path).unwrap();
        let shorter = copy.split_inclusive(|b| *b == b'\n').take(6);
        let shorter: Vec<u8> = shorter.flatten().copied().collect();
        private_file::replace(&path, &shorter, false).unwrap();
        assert_eq!(one.sign(&state, end(7, false)).unwrap().head.seq, 6);
        assert_eq!(RunIndex::read(&path).unwrap().runs().count(), 7);
    }
}
