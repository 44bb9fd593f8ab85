//! Sends data to a collector, from a separate task. Producers never wait: if the queue is full,
//! data is dropped.

use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::{Client, Url};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::metrics::{Measurement, Metrics};
use super::otlp::{self, Span};
use crate::config::TelemetryConfig;
use airlock_sandbox::budget::Budget;
use airlock_sandbox::clock::Clock;

const QUEUE: usize = 4_096;
const BATCH: usize = 512;
/// How long spans are collected before they are sent together.
const SPANS_EVERY: Duration = Duration::from_secs(1);
/// Maximum time that the end of a broker waits for the collector.
const FLUSH_WALL: Duration = Duration::from_secs(1);

pub(super) struct Exporter {
    news: mpsc::Sender<ExportMessage>,
    trouble: Trouble,
}

/// The reason of the first failure to send to the collector.
#[derive(Clone, Default)]
struct Trouble(Arc<watch::Sender<Option<String>>>);

impl Trouble {
    fn note(&self, why: &str) {
        self.0.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert_with(|| why.to_owned());
            is_first
        });
    }
}

enum ExportMessage {
    Span(Box<Span>),
    Measured(Measurement),
    Flush(oneshot::Sender<()>),
}

struct Sender {
    config: TelemetryConfig,
    budget: Budget,
    client: Client,
    trouble: Trouble,
    clock: Clock,
    began_ms: u64,
    spans: Vec<Span>,
    metrics: Metrics,
}

impl Exporter {
    /// Starts the task. Returns `None` if no HTTP client can be created.
    pub(super) fn start(config: TelemetryConfig, budget: Budget) -> Option<Self> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // If an embedding program has already installed a provider, that provider stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let is_plain = |url: &Option<Url>| url.as_ref().is_none_or(|url| url.scheme() == "http");
        let mut client = Client::builder()
            .timeout(config.send_within)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("airlock/", env!("CARGO_PKG_VERSION")));
        if is_plain(&config.traces) && is_plain(&config.metrics) {
            client = client.tls_certs_only([]);
        }
        let (clock, trouble) = (Clock::start(), Trouble::default());
        let sender = Sender {
            config,
            budget,
            trouble: trouble.clone(),
            client: client.build().ok()?,
            began_ms: clock.now_ms(),
            clock,
            spans: Vec::new(),
            metrics: Metrics::default(),
        };
        let (news, queue) = mpsc::channel(QUEUE);
        tokio::spawn(sender.work(queue));
        Some(Self { news, trouble })
    }

    pub(super) fn trace(&self, span: Span) {
        let _ = self.news.try_send(ExportMessage::Span(Box::new(span)));
    }

    pub(super) fn measure(&self, measured: Measurement) {
        let _ = self.news.try_send(ExportMessage::Measured(measured));
    }

    pub(super) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        let flushed = async {
            if self.news.send(ExportMessage::Flush(done)).await.is_ok() {
                let _ = is_done.await;
            }
        };
        if timeout(FLUSH_WALL, flushed).await.is_err() {
            self.trouble
                .note("the collector did not accept the last data in time");
        }
    }

    /// Returns a receiver of the reason of the first failure.
    pub(super) fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.0.subscribe()
    }
}

impl Sender {
    async fn work(mut self, mut queue: mpsc::Receiver<ExportMessage>) {
        let mut spans_due = interval(SPANS_EVERY);
        let mut metrics_due = interval(self.config.metrics_every);
        for due in [&mut spans_due, &mut metrics_due] {
            due.set_missed_tick_behavior(MissedTickBehavior::Delay);
            due.tick().await;
        }
        loop {
            tokio::select! {
                news = queue.recv() => match news {
                    None => break,
                    Some(ExportMessage::Span(span)) => {
                        self.spans.push(*span);
                        if self.spans.len() >= BATCH {
                            self.send_spans().await;
                        }
                    }
                    Some(ExportMessage::Measured(measured)) => self.metrics.take(measured),
                    Some(ExportMessage::Flush(done)) => {
                        self.send_spans().await;
                        self.send_metrics().await;
                        let _ = done.send(());
                    }
                },
                _ = spans_due.tick() => self.send_spans().await,
                _ = metrics_due.tick() => self.send_metrics().await,
            }
        }
        self.send_spans().await;
        self.send_metrics().await;
    }

    async fn send_spans(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if let (Some(url), false) = (self.config.traces.clone(), spans.is_empty()) {
            let traces = otlp::traces(&self.config.resource, &spans);
            self.send(url, &traces).await;
        }
    }

    async fn send_metrics(&mut self) {
        let times = (self.began_ms, self.clock.now_ms());
        let told = self.metrics.told(times, &self.budget.usage());
        if let (Some(url), false) = (self.config.metrics.clone(), told.is_empty()) {
            let metrics = otlp::metrics(&self.config.resource, &told);
            self.send(url, &metrics).await;
        }
    }

    /// Sends one request. Spans that the collector does not accept are lost. Metrics are
    /// cumulative, so later metrics include lost ones.
    async fn send(&self, url: Url, body: &Value) {
        let request = self
            .client
            .post(url)
            .headers(self.config.headers.clone())
            .header("content-type", "application/json")
            .body(body.to_string());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => {
                let status = answer.status().as_u16();
                self.trouble
                    .note(&format!("the collector answered {status}"));
            }
            Err(error) if error.is_timeout() => {
                self.trouble.note("the collector did not answer in time")
            }
            Err(error) if error.is_connect() => {
                self.trouble.note("the collector cannot be reached")
            }
            Err(_) => self.trouble.note("the connection to the collector failed"),
        }
    }
}
