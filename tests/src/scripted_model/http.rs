//! The smallest HTTP server that the hosts' clients accept: one request per connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

/// Reads one request and answers it. The function gets the path and the body, and returns the
/// content type and the body of the answer.
pub(super) fn serve(
    stream: TcpStream,
    answer: impl FnOnce(&str, &Value) -> Option<(&'static str, String)>,
) {
    // A host may end in the middle of a request.
    let _ = try_serve(stream, answer);
}

fn try_serve(
    mut stream: TcpStream,
    answer: impl FnOnce(&str, &Value) -> Option<(&'static str, String)>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let head = head.to_ascii_lowercase();
    let body = match header(&head, "content-length").and_then(|it| it.parse().ok()) {
        Some(length) => {
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            body
        }
        None if header(&head, "transfer-encoding") == Some("chunked") => chunks(&mut reader)?,
        None => Vec::new(),
    };
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let (status, (kind, body)) = match answer(&path, &body) {
        Some(answer) => ("200 OK", answer),
        None => ("404 Not Found", ("application/json", "{}".to_owned())),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(it, value)| (it == name).then_some(value))
}

fn chunks(reader: &mut BufReader<TcpStream>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = line.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            return Ok(body);
        }
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk)?;
        chunk.truncate(size);
        body.extend(chunk);
    }
}
