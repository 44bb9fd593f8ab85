//! Reads the standard OpenTelemetry variables that airlock supports.

use std::time::Duration;

use airlock_core::problem::Problem;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::config::Environment;

const METRICS_EVERY_MS: u64 = 60_000;
const SEND_WITHIN_MS: u64 = 10_000;

/// The addresses that telemetry is sent to, and the description of this process.
#[derive(Debug, Clone)]
pub struct TelemetryConfig {
    pub(crate) traces: Option<Url>,
    pub(crate) metrics: Option<Url>,
    /// Headers for the collector. Their values are marked as sensitive, so they are never printed.
    pub(crate) headers: HeaderMap,
    /// `service.name` and other attributes of this process.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) metrics_every: Duration,
    pub(crate) send_within: Duration,
}

impl TelemetryConfig {
    /// Returns `None` if no collector is configured, or if telemetry is disabled.
    pub fn from_environment(environment: &Environment) -> Result<Option<Self>, Problem> {
        let text = |name: &str| environment.text(name);
        let is_off = text("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"));
        if is_off {
            return Ok(None);
        }
        let base = text("OTEL_EXPORTER_OTLP_ENDPOINT");
        let endpoint = |kind: &str, path: &str| {
            let lower = kind.to_ascii_lowercase();
            if text(&format!("OTEL_{kind}_EXPORTER")) == Some("none") {
                return Ok(None);
            }
            let own = format!("OTEL_EXPORTER_OTLP_{kind}_ENDPOINT");
            let url = match (text(&own), base) {
                (Some(own), _) => own.to_owned(),
                (None, Some(base)) => format!("{}/{path}", base.trim_end_matches('/')),
                (None, None) => return Ok(None),
            };
            let url = Url::parse(&url).ok();
            let url = url.filter(|it| matches!(it.scheme(), "http" | "https"));
            let bad = format!("invalid endpoint for {lower}; expected an http or https URL");
            url.map(Some).ok_or_else(|| problem(bad))
        };
        let (traces, metrics) = (
            endpoint("TRACES", "v1/traces")?,
            endpoint("METRICS", "v1/metrics")?,
        );
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let protocol = text("OTEL_EXPORTER_OTLP_PROTOCOL").unwrap_or("http/json");
        if protocol != "http/json" {
            let why = "unsupported OTEL_EXPORTER_OTLP_PROTOCOL; expected http/json";
            return Err(problem(why.to_owned()));
        }
        let ms = |name: &str, default: u64| {
            let read = text(name).map_or(Some(default), |it| it.trim().parse().ok());
            let read = read.filter(|ms| *ms > 0).map(Duration::from_millis);
            read.ok_or_else(|| {
                problem(format!("invalid {name}; expected milliseconds, at least 1"))
            })
        };
        let name = text("OTEL_SERVICE_NAME").unwrap_or("airlock");
        let mut resource = vec![
            ("service.name".to_owned(), name.to_owned()),
            ("service.version".into(), env!("CARGO_PKG_VERSION").into()),
        ];
        let attributes = "OTEL_RESOURCE_ATTRIBUTES";
        let described = pairs(text(attributes).unwrap_or_default());
        resource.extend(
            described.ok_or_else(|| problem(format!("invalid {attributes}; expected a=b,c=d")))?,
        );
        Ok(Some(Self {
            traces,
            metrics,
            headers: headers(text("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default())?,
            resource,
            metrics_every: ms("OTEL_METRIC_EXPORT_INTERVAL", METRICS_EVERY_MS)?,
            send_within: ms("OTEL_EXPORTER_OTLP_TIMEOUT", SEND_WITHIN_MS)?,
        }))
    }
}

fn problem(why: String) -> Problem {
    let what = "no telemetry is sent";
    let next = "correct the variable, or set OTEL_SDK_DISABLED=true";
    crate::config::invalid(what, why, next)
}

/// Parses headers. The error quotes nothing, because headers contain credentials.
fn headers(text: &str) -> Result<HeaderMap, Problem> {
    let bad = || problem("OTEL_EXPORTER_OTLP_HEADERS contains an invalid header".to_owned());
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(text).ok_or_else(bad)? {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// Parses `a=b,c=d`. Returns `None` if a part is not such a pair.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_owned(), decoded(value.trim())))
    });
    pairs.collect()
}

/// Decodes percent-encoded bytes.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).and_then(|it| u8::from_str_radix(it, 16).ok());
        match digits {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(part.get(2..).unwrap_or_default().bytes());
            }
            None => {
                bytes.push(b'%');
                bytes.extend(part.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_from<const N: usize>(variables: [(&str, &str); N]) -> Option<TelemetryConfig> {
        TelemetryConfig::from_environment(&Environment::from(variables)).unwrap()
    }

    #[test]
    fn telemetry_is_off_without_collector() {
        assert!(config_from([]).is_none());
        assert!(config_from([("OTEL_SERVICE_NAME", "x")]).is_none());
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/");
        assert!(config_from([base, ("OTEL_SDK_DISABLED", "true")]).is_none());
        let wrong = ("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense");
        assert!(config_from([wrong, ("OTEL_SDK_DISABLED", "true")]).is_none());
        let config = config_from([base, ("OTEL_METRICS_EXPORTER", "none")]).unwrap();
        assert_eq!(
            config.traces.unwrap().as_str(),
            "http://localhost:4318/v1/traces"
        );
        assert!(config.metrics.is_none());
    }

    #[test]
    fn telemetry_variables_parse_and_errors_hide_headers() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.example");
        let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "Api-Key=s3cr%65t,x=1");
        let config = config_from([base, headers, ("OTEL_RESOURCE_ATTRIBUTES", "a=b")]).unwrap();
        assert_eq!(config.headers["api-key"], "s3cret");
        assert!(!format!("{config:?}").contains("s3cret"));
        assert!(config.resource.contains(&("a".into(), "b".into())));
        for wrong in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "nonsense"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "bad name=s3cret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x=1,s3cret"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
        ] {
            let problem =
                TelemetryConfig::from_environment(&Environment::from([base, wrong])).unwrap_err();
            assert!(!problem.to_string().contains("s3cret"), "{problem}");
        }
    }
}
