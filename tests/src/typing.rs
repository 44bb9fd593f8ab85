//! Runs a command at a terminal and types answers to its questions. The terminal comes from
//! `script`, which every Linux has.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use crate::binary::airlock;
use crate::command::Home;
use crate::patience::PATIENCE;

/// Runs `airlock` with these arguments, waits for each text and types its answer. Returns all
/// output of the terminal, and the exit code.
///
/// # Panics
///
/// Panics if a text does not appear.
#[must_use]
pub fn type_at(home: &Home, args: &[&str], typed: &[(&str, &str)]) -> (String, Option<i32>) {
    let answers = typed.iter().map(|(wanted, answer)| {
        let answer = move |_: &str| (*answer).to_owned();
        (*wanted, answer)
    });
    act_at(home, args, answers)
}

/// Like [`type_at`], but each answer depends on the output so far.
///
/// # Panics
///
/// Panics if a text does not appear.
#[must_use]
pub fn act_at<'a, A: Fn(&str) -> String>(
    home: &Home,
    args: &[&str],
    typed: impl IntoIterator<Item = (&'a str, A)>,
) -> (String, Option<i32>) {
    let quoted = |arg: &str| format!("'{}'", arg.replace('\'', "'\\''"));
    let mut line = quoted(&airlock().display().to_string());
    for arg in args {
        line.push_str(&format!(" {}", quoted(arg)));
    }
    let mut command = Command::new("script");
    home.dress(&mut command);
    let mut child = command
        .env("SHELL", "/bin/sh")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("`script` of util-linux");
    let mut keys = child.stdin.take().expect("a pipe");
    let mut screen = child.stdout.take().expect("a pipe");
    let (shows, shown) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = screen.read(&mut bytes) {
            let _ = shows.send(bytes[..length].to_vec());
        }
    });
    let since = Instant::now();
    let (mut seen, mut from) = (Vec::new(), 0);
    let mut text = String::new();
    for (wanted, answer) in typed {
        loop {
            if let Some(at) = text.get(from..).and_then(|rest| rest.find(wanted)) {
                from += at + wanted.len();
                break;
            }
            let left = PATIENCE.saturating_sub(since.elapsed());
            let more = shown.recv_timeout(left);
            seen.extend(more.unwrap_or_else(|_| panic!("no {wanted:?} in\n{text}")));
            text = String::from_utf8_lossy(&seen).into_owned();
        }
        let answer = answer(&text);
        keys.write_all(answer.as_bytes()).expect("a terminal");
    }
    let status = child.wait().expect("a child process");
    drop(keys);
    reader.join().expect("the reader thread");
    seen.extend(shown.iter().flatten());
    (String::from_utf8_lossy(&seen).into_owned(), status.code())
}
