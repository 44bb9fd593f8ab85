//! A real browser, headless: Debian's Chromium, driven through its own WebDriver over plain HTTP.
//! As root, missing packages are installed. If that is impossible, the tests that need a browser
//! print one `SKIP:` line and pass. With `AIRLOCK_REQUIRE_BROWSER=1` they fail instead.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::apt;
use crate::patience::PATIENCE;

/// The key under which the WebDriver protocol returns elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
const PACKAGES: [&str; 3] = ["chromium", "chromium-driver", "fonts-dejavu-core"];

/// The paths of the browser and its driver.
#[derive(Debug)]
pub struct BrowserInstall {
    chromium: PathBuf,
    driver: PathBuf,
}

/// Returns `None` after printing a `SKIP:` line with the reason.
#[must_use]
pub fn installed() -> Option<BrowserInstall> {
    match find().or_else(|why| apt::install(&PACKAGES).context(why).and_then(|()| find())) {
        Ok(found) => Some(found),
        Err(why) if std::env::var_os("AIRLOCK_REQUIRE_BROWSER").is_some() => {
            panic!("browser: {why:#}")
        }
        Err(why) => {
            // Not through `eprintln!`: a test harness would capture the line.
            let _ = writeln!(std::io::stderr(), "SKIP: browser: {why:#}");
            None
        }
    }
}

fn find() -> Result<BrowserInstall> {
    let on_path = |name: &str| -> Result<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
        places
            .find(|place| place.is_file())
            .with_context(|| format!("`{name}` is not installed"))
    };
    Ok(BrowserInstall {
        chromium: on_path("chromium")?,
        driver: on_path("chromedriver")?,
    })
}

/// One browser with an empty profile. Dropping this value ends the browser and its processes.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Reads the driver's output to its end, so that the driver never blocks on it.
    _said: std::thread::JoinHandle<()>,
    _profile: TempDir,
}

impl Browser {
    pub fn start(installed: &BrowserInstall) -> Result<Self> {
        let profile = TempDir::with_prefix("airlock-browser-")?;
        let mut driver = Command::new(&installed.driver)
            .arg("--port=0")
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("chromedriver")?;
        let mut lines = BufReader::new(driver.stdout.take().context("a pipe")?).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                line.strip_suffix('.')?
                    .rsplit_once("on port ")?
                    .1
                    .parse()
                    .ok()
            })
            .context("chromedriver printed no port")?;
        let said = std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            _said: said,
            _profile: profile,
        };
        let wanted = capabilities(&installed.chromium, browser._profile.path());
        let value = browser.ask("POST", "/session", &wanted)?;
        browser.session = value["sessionId"]
            .as_str()
            .context("no session")?
            .to_owned();
        Ok(browser)
    }

    pub fn open(&self, url: &str) -> Result<()> {
        self.post("/url", &json!({"url": url})).map(drop)
    }

    /// Returns the value of an expression in the page.
    pub fn value(&self, expression: &str) -> Result<Value> {
        let script = format!("return ({expression})");
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    pub fn text(&self, css: &str) -> Result<String> {
        let css = json!(css);
        let value = self.value(&format!("document.querySelector({css})?.innerText ?? ''"))?;
        Ok(value.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the expression is true. The error shows what the page contains instead.
    pub fn wait(&self, expression: &str) -> Result<()> {
        let since = Instant::now();
        loop {
            if self.value(expression)? == json!(true) {
                return Ok(());
            }
            if since.elapsed() > PATIENCE {
                let shown = self.text("body")?;
                bail!("still false: {expression}\nthe page shows:\n{shown:.2000}");
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Clicks as a person would: the element must be visible, and nothing may cover it.
    pub fn click(&self, css: &str) -> Result<()> {
        let found = self.post("/element", &json!({"using": "css selector", "value": css}))?;
        let id = found[ELEMENT].as_str().context("no element")?;
        self.post(&format!("/element/{id}/click"), &json!({}))
            .map(drop)
    }

    /// Presses keys, one after the other, on the focused element.
    pub fn press(&self, keys: &str) -> Result<()> {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()}))
            })
            .collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.post("/actions", &json!({"actions": [keyboard]}))
            .map(drop)
    }

    /// Opens another tab and returns its handle.
    pub fn new_tab(&self) -> Result<String> {
        let made = self.post("/window/new", &json!({"type": "tab"}))?;
        Ok(made["handle"].as_str().context("a handle")?.to_owned())
    }

    pub fn tab(&self) -> Result<String> {
        let handle = self.ask(
            "GET",
            &format!("/session/{}/window", self.session),
            &Value::Null,
        )?;
        Ok(handle.as_str().context("a handle")?.to_owned())
    }

    pub fn close_tab(&self) -> Result<()> {
        let path = format!("/session/{}/window", self.session);
        self.ask("DELETE", &path, &Value::Null).map(drop)
    }

    pub fn switch_to(&self, tab: &str) -> Result<()> {
        self.post("/window", &json!({"handle": tab})).map(drop)
    }

    /// Sets the window size that the page sees.
    pub fn resize(&self, width: u32, height: u32) -> Result<()> {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics)
            .map(drop)
    }

    /// Sets the preferred colour scheme, `light` or `dark`.
    pub fn prefer(&self, scheme: &str) -> Result<()> {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &features)
            .map(drop)
    }

    /// Saves the whole page as a PNG.
    pub fn screenshot(&self, path: &Path) -> Result<()> {
        let params = json!({"format": "png", "captureBeyondViewport": true});
        let shot = self.devtools("Page.captureScreenshot", &params)?;
        let data = shot["data"].as_str().context("no screenshot")?;
        std::fs::write(path, from_base64(data)?).with_context(|| path.display().to_string())
    }

    /// Returns the console messages since the last call.
    pub fn console(&self) -> Result<Vec<String>> {
        let lines = self.post("/se/log", &json!({"type": "browser"}))?;
        let lines = lines.as_array().context("no console messages")?;
        Ok(lines.iter().map(Value::to_string).collect())
    }

    fn devtools(&self, command: &str, params: &Value) -> Result<Value> {
        let body = json!({"cmd": command, "params": params});
        self.post("/goog/cdp/execute", &body)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", &format!("/session/{}{path}", self.session), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let answer = exchange(self.port, method, path, body)
            .with_context(|| format!("{method} {path} {body:.200}"))?;
        let value = &answer["value"];
        if let Some(error) = value["error"].as_str() {
            bail!(
                "{path}: {error}: {:.500}",
                value["message"].as_str().unwrap_or_default()
            );
        }
        Ok(value.clone())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser with the session.
        let _ = self.ask(
            "DELETE",
            &format!("/session/{}", self.session),
            &Value::Null,
        );
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn capabilities(chromium: &Path, profile: &Path) -> Value {
    let args = [
        "--headless".to_owned(),
        "--no-sandbox".into(),
        "--disable-gpu".into(),
        "--disable-quic".into(),
        "--disable-dev-shm-usage".into(),
        "--no-first-run".into(),
        "--disable-background-networking".into(),
        "--disable-component-update".into(),
        "--disable-sync".into(),
        "--window-size=1100,900".into(),
        format!("--user-data-dir={}", profile.join("profile").display()),
    ];
    json!({"capabilities": {"alwaysMatch": {
        "browserName": "chrome",
        "unhandledPromptBehavior": "ignore",
        "goog:chromeOptions": {"binary": chromium, "args": args},
        "goog:loggingPrefs": {"browser": "ALL"},
    }}})
}

/// Sends one request on a new connection.
fn exchange(port: u16, method: &str, path: &str, body: &Value) -> Result<Value> {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut reader = BufReader::new(stream);
    let mut length = None;
    loop {
        let mut line = String::new();
        ensure!(
            reader.read_line(&mut line)? > 0,
            "the driver closed the connection"
        );
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse()?);
        }
    }
    let mut said = vec![0; length.context("a response without a length")?];
    reader.read_exact(&mut said)?;
    Ok(serde_json::from_slice(&said)?)
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::with_capacity(text.len() * 3 / 4));
    for digit in text.trim_end_matches('=').bytes() {
        let value = DIGITS.iter().position(|it| *it == digit);
        let value = u32::try_from(value.context("invalid base64")?)?;
        bits = (bits << 6 | value) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff)?);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_decodes() {
        assert_eq!(from_base64("aGVsbG8=").unwrap(), b"hello");
        assert_eq!(from_base64("iVBORw0KGgo=").unwrap(), b"\x89PNG\r\n\x1a\n");
        assert!(from_base64("a b").is_err());
    }
}
