//! Tests that a server with open calls is not disconnected as idle, and that a server that is being
//! disconnected gets no call.

use std::fs::File;
use std::future::poll_fn;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Command;
use std::task::Poll;
use std::time::{Duration, Instant};

use airlock::config::{Config, Environment, Flags};
use airlock::core::id::ServerName;
use airlock::{Broker, RunEvent, Script, ServerState};
use rustix::fs::OFlags;
use tempfile::TempDir;
use tests::changing::{ChangingServer, tool};
use tests::patience::{PATIENCE, wait_until};
use tokio::time::timeout;

use super::{offers, run, until, value};

/// Builds a broker with `fs` on demand.
async fn broker(home: &TempDir, fs: &ChangingServer, slow: &ChangingServer) -> Broker {
    let config = home.path().join("airlock.toml");
    let of = |server: &ChangingServer| {
        let command = tests::command::program("changing-server");
        let (command, folder) = (command.display(), server.folder().display());
        format!("command = \"{command}\"\nargs = [\"{folder}\"]\n")
    };
    let text = format!(
        "[servers.slow]\n{}\n[servers.fs]\nstart = \"on-demand\"\nidle = \"10m\"\n{}",
        of(slow),
        of(fs)
    );
    std::fs::write(&config, text).unwrap();
    let flags = Flags {
        config: Some(config),
        allow: vec!["*.*".into()],
        state_dir: Some(home.path().join("state")),
        ..Flags::default()
    };
    let config = Config::load(flags, &Environment::from([])).unwrap();
    let broker = Broker::builder().config(config).servers_join_later(true);
    let broker = broker.build().await.unwrap();
    until(&broker, |it| offers(it, "slow.change")).await;
    broker
}

fn name() -> ServerName {
    ServerName::parse("fs").unwrap()
}

/// Blocks every reader of a server's stored description until this value is dropped.
struct BlockedListing(PathBuf);

impl BlockedListing {
    fn new(home: &TempDir, tool: &str) -> Self {
        // A new file first has a temporary name, and may be removed before the test reads it.
        let names_it = |path: &PathBuf| {
            let text = std::fs::read_to_string(path);
            path.extension().is_none() && text.is_ok_and(|it| it.contains(tool))
        };
        let mut found = None;
        wait_until(|| {
            let files = std::fs::read_dir(home.path().join("state/listings"));
            let mut paths = files.into_iter().flatten().flatten().map(|it| it.path());
            found = paths.find(names_it);
            found.is_some()
        });
        let path = found.unwrap();
        std::fs::remove_file(&path).unwrap();
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Self(path)
    }

    /// Waits until a reader is blocked. The reader continues when the returned file is dropped.
    async fn until_read(&self) -> File {
        let since = Instant::now();
        loop {
            let nonblocking = OFlags::NONBLOCK.bits() as i32;
            let mut options = File::options();
            match options.write(true).custom_flags(nonblocking).open(&self.0) {
                Ok(file) => return file,
                Err(_) => assert!(since.elapsed() < PATIENCE, "no reader came"),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test]
async fn call_during_idle_disconnect_reconnects() {
    let home = TempDir::new().unwrap();
    let fs = ChangingServer::new("fs", &[tool("wait")]);
    let slow = ChangingServer::new("slow", &[tool("change")]);
    let broker = broker(&home, &fs, &slow).await;
    broker.join(&name()).await.unwrap();
    until(&broker, |it| offers(it, "fs.wait")).await;

    // The broker is rebuilding its list of tools, and all other changes must wait.
    let stuck = BlockedListing::new(&home, "change");
    slow.lists(&[tool("change"), tool("more")]);
    run(&broker, "await slow.change({})").await;
    let hanging = stuck.until_read().await;
    let (rested, fs_name) = (broker.clone(), name());
    let mut resting = pin!(rested.rest(&fs_name));
    let at_once = poll_fn(|cx| Poll::Ready(resting.as_mut().poll(cx))).await;
    assert!(at_once.is_pending(), "the end must wait");
    let mut running = broker.run(Script::body("return (await fs.wait({})) && 1"));
    while let Some(event) = running.next_event().await {
        if matches!(event, RunEvent::CallDecided { .. }) {
            break;
        }
    }
    // A call to the server that is being disconnected would arrive within this time.
    let _ = timeout(Duration::from_millis(300), fs.until("call wait", 1)).await;
    drop(hanging);
    let called = async {
        fs.until("call wait", 1).await;
        fs.put("go");
        running.report().await
    };
    let (rested, report) = tokio::join!(resting, called);
    assert!(rested);
    assert_eq!(value(&report), 1);
    assert_eq!(
        fs.noted("start"),
        2,
        "disconnected, and started again for the call"
    );
    broker.close().await;
}

#[tokio::test]
async fn called_server_is_not_disconnected() {
    let home = TempDir::new().unwrap();
    let fs = ChangingServer::new("fs", &[tool("wait")]);
    let slow = ChangingServer::new("slow", &[tool("change")]);
    let broker = broker(&home, &fs, &slow).await;
    broker.join(&name()).await.unwrap();
    until(&broker, |it| offers(it, "fs.wait")).await;
    let running = broker.run(Script::body("return (await fs.wait({})) && 1"));
    fs.until("call wait", 1).await;
    assert!(!broker.rest(&name()).await);
    fs.put("go");
    assert_eq!(value(&running.report().await), 1);
    assert!(broker.rest(&name()).await);
    let rests = |it: &Broker| {
        it.servers()
            .iter()
            .any(|it| it.state == ServerState::OnDemand)
    };
    assert!(rests(&broker));
    assert_eq!(fs.noted("start"), 1);
    broker.close().await;
}
