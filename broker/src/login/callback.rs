//! Receives the redirect of the browser on a loopback port.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const REQUEST_BYTES_MAX: usize = 32 * 1024;
const REQUEST_WALL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct CallbackListener {
    listener: TcpListener,
    redirect_uri: String,
}

impl CallbackListener {
    /// Listens at the configured redirect URI, or at any free port of 127.0.0.1.
    pub(crate) async fn bind(configured: Option<&str>, path: &str) -> Result<Self, String> {
        let port = match configured {
            None => 0,
            Some(text) => {
                let url = Url::parse(text).map_err(|error| error.to_string())?;
                let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1"));
                if url.scheme() != "http" || !is_local {
                    return Err(format!(
                        "`{text}` is not an http address of this machine; paste the address instead"
                    ));
                }
                url.port_or_known_default().unwrap_or(80)
            }
        };
        let address = (IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| format!("port {port}: {error}"))?;
        let bound = listener.local_addr().map_err(|error| error.to_string())?;
        let redirect_uri = configured.map(str::to_owned);
        Ok(Self {
            redirect_uri: redirect_uri
                .unwrap_or_else(|| format!("http://127.0.0.1:{}{path}", bound.port())),
            listener,
        })
    }

    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the browser, and returns the address that it asked for. Any page and any program
    /// can send requests to the port: those that are not an answer of the login are refused, and the
    /// login goes on.
    pub(crate) async fn redirected(
        &self,
        is_answer: impl Fn(&str) -> bool,
    ) -> std::io::Result<String> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let receiving = self.receive(stream, &is_answer);
            let received = tokio::time::timeout(REQUEST_WALL, receiving).await;
            if let Ok(Ok(Some(address))) = received {
                return Ok(address);
            }
        }
    }

    async fn receive(
        &self,
        mut stream: TcpStream,
        is_answer: impl Fn(&str) -> bool,
    ) -> std::io::Result<Option<String>> {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
            let mut chunk = [0; 4096];
            match stream.read(&mut chunk).await? {
                0 => break,
                read => request.extend_from_slice(chunk.get(..read).unwrap_or_default()),
            }
        }
        let request = String::from_utf8_lossy(&request);
        let target = request
            .strip_prefix("GET /")
            .and_then(|rest| rest.split(' ').next());
        let address = target.and_then(|target| {
            let base = Url::parse(&self.redirect_uri).ok()?;
            let address = format!("{}/{target}", base.origin().ascii_serialization());
            is_answer(&address).then_some(address)
        });
        let (status, text) = match &address {
            Some(_) => (
                "200 OK",
                "airlock has received the answer. You can close this page.",
            ),
            None => ("400 Bad Request", "This request is not part of the login."),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
            text.len()
        );
        // A browser that has closed the connection has sent its answer all the same.
        let written = stream.write_all(answer.as_bytes()).await;
        drop(written.and(stream.shutdown().await));
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn wrong_request_gets_400_and_does_not_end_the_login() {
        async fn get(listener: &CallbackListener, query: &str) -> String {
            let origin = listener.listener.local_addr().unwrap();
            let mut stream = TcpStream::connect(origin).await.unwrap();
            let request = format!("GET /callback?{query} HTTP/1.1\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        }
        let listener = CallbackListener::bind(None, "/callback").await.unwrap();
        let browser = async {
            for query in ["code=c&state=wrong", "code=c", "error=access_denied"] {
                let answer = get(&listener, query).await;
                assert!(answer.starts_with("HTTP/1.1 400 "), "{query}: {answer}");
                assert!(!answer.contains("has received"), "{query}: {answer}");
            }
            get(&listener, "code=c&state=right").await
        };
        let is_answer = |address: &str| address.ends_with("state=right");
        let redirected = listener.redirected(is_answer);
        let (address, answer) = futures_util::join!(redirected, browser);
        assert!(address.unwrap().ends_with("?code=c&state=right"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}
