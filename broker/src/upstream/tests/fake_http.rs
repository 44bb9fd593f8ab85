//! An HTTP server that answers each request by a script, with one connection per request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airlock_core::id::{ServerName, ToolName};
use airlock_core::outcome::Reply;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::fake::{FakeReply, legacy};
use crate::secret::Secret;
use crate::server_url::ServerUrl;
use crate::upstream::era::EraMemory;
use crate::upstream::message_limits::MessageLimits;
use crate::upstream::pool::{ServerListing, Upstream, UpstreamSettings};
use crate::upstream::spec::{ServerSpec, Transport};

#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    pub(super) verb: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

impl ReceivedRequest {
    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

pub(super) struct HttpReply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    /// Whether the connection stays open after the body.
    pub(super) hang: bool,
}

impl HttpReply {
    pub(super) fn status(status: u16) -> Self {
        Self {
            status,
            headers: vec![],
            body: vec![],
            hang: false,
        }
    }

    pub(super) fn json(body: &Value) -> Self {
        Self {
            headers: vec![("Content-Type", "application/json".into())],
            body: body.to_string().into_bytes(),
            ..Self::status(200)
        }
    }

    pub(super) fn events(body: &str) -> Self {
        Self {
            headers: vec![("Content-Type", "text/event-stream".into())],
            body: body.as_bytes().to_vec(),
            ..Self::status(200)
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn hanging(self) -> Self {
        Self { hang: true, ..self }
    }
}

/// Returns the answers of a server of the older era to everything but calls.
pub(super) fn older(asked: &ReceivedRequest) -> Option<HttpReply> {
    let says = legacy(&asked.body)?;
    Some(match says.into_iter().next() {
        Some(FakeReply::Json(value)) => HttpReply::json(&value),
        _ => HttpReply::status(202),
    })
}

pub(super) struct FakeHttpServer {
    pub(super) url: String,
    pub(super) asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    /// Number of connections that the client closed first.
    pub(super) hung_up: Arc<Mutex<usize>>,
}

type Script = dyn Fn(&ReceivedRequest) -> HttpReply + Send + Sync;

impl FakeHttpServer {
    pub(super) async fn start(
        script: impl Fn(&ReceivedRequest) -> HttpReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "http://{}/mcp?key=query-secret",
            listener.local_addr().unwrap()
        );
        let web = Self {
            url,
            asked: Arc::default(),
            hung_up: Arc::default(),
        };
        let (asked, hung_up) = (web.asked.clone(), web.hung_up.clone());
        let script: Arc<Script> = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(
                    stream,
                    script.clone(),
                    asked.clone(),
                    hung_up.clone(),
                ));
            }
        });
        web
    }

    pub(super) async fn connect(&self) -> (Upstream, ServerListing) {
        // No test waits for these limits, so they may be long.
        let (probe, connect) = (Duration::from_secs(200), Duration::from_secs(600));
        self.connect_within(probe, connect).await
    }

    pub(super) async fn connect_within(
        &self,
        probe: Duration,
        connect: Duration,
    ) -> (Upstream, ServerListing) {
        let url = ServerUrl::parse(&self.url).unwrap();
        let headers = vec![(
            "Authorization".to_owned(),
            Secret::new("Bearer header-secret"),
        )];
        let mut spec = ServerSpec::new("web", Transport::Http { url, headers });
        spec.timeouts.probe = probe;
        spec.timeouts.connect = connect;
        let message_limits = MessageLimits {
            result_bytes_max: 100_000,
            list_page_bytes_max: 100_000,
            ..MessageLimits::default()
        };
        let surroundings = UpstreamSettings {
            base_env: vec![],
            message_limits,
            eras: EraMemory::none(),
            abilities: crate::client_bridge::ClientCapabilities::ALL.from_now_on(),
        };
        let (upstream, mut listed) = Upstream::connect_all(vec![spec], &surroundings).await;
        (upstream, listed.remove(0))
    }

    pub(super) fn asked(&self, method: &str) -> Vec<ReceivedRequest> {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .filter(|asked| asked.method() == method)
            .cloned()
            .collect()
    }
}

pub(super) async fn call(upstream: &Upstream, arguments: &Value) -> Reply {
    let (server, tool) = (ServerName("web".into()), ToolName("t".into()));
    upstream
        .call(
            &server,
            &tool,
            arguments.to_string().into_bytes(),
            Duration::from_secs(600),
        )
        .await
}

pub(super) fn listing(asked: &ReceivedRequest, tools: &Value) -> HttpReply {
    HttpReply::json(&super::fake::result(
        &asked.body,
        json!({"tools": tools, "resultType": "complete"}),
    ))
}

async fn answer(
    mut stream: TcpStream,
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    hung_up: Arc<Mutex<usize>>,
) {
    let Some(asked) = read(&mut stream).await else {
        return;
    };
    seen.lock().unwrap().push(asked.clone());
    let page = script(&asked);
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", page.status);
    for (name, value) in &page.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !page.hang && page.status != 202 {
        head.push_str(&format!("Content-Length: {}\r\n", page.body.len()));
    }
    let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
    let _ = stream.write_all(&page.body).await;
    if page.hang {
        let mut rest = [0; 1];
        if let Ok(0) | Err(_) = stream.read(&mut rest).await {
            *hung_up.lock().unwrap() += 1;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let mut chunk = [0; 4_096];
        match stream.read(&mut chunk).await {
            Ok(read @ 1..) => bytes.extend_from_slice(&chunk[..read]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let verb = lines.next()?.split(' ').next()?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[end + 4..].to_vec();
    let have = body.len();
    body.resize(length, 0);
    stream.read_exact(&mut body[have..]).await.ok()?;
    Some(ReceivedRequest {
        verb,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}
