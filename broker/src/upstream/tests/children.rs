//! Servers that are real child processes.

use std::time::{Duration, Instant};

use airlock_core::id::{ServerName, ToolName};
use airlock_core::outcome::Reply;

use super::fake::words;
use crate::client_bridge::ClientCapabilities;
use crate::secret::Secret;
use crate::tempdir::TempDir;
use crate::upstream::era::{Era, EraMemory};
use crate::upstream::message_limits::MessageLimits;
use crate::upstream::pool::{ServerListing, Upstream, UpstreamSettings};
use crate::upstream::spec::{ServerSpec, Transport};

/// A server of the older era in shell. `CALL` is replaced by its reaction to a call.
pub(super) const SERVER: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"no"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) CALL ;;
  esac
done
"#;

pub(super) fn text(said: &str) -> String {
    format!(r#"say '"result":{{"content":[{{"type":"text","text":"'"{said}"'"}}]}}'"#)
}

pub(super) fn shell(script: String) -> ServerSpec {
    let args = vec!["-c".to_owned(), script];
    ServerSpec::new(
        "sh",
        Transport::Stdio {
            command: "sh".into(),
            args,
            env: vec![],
            cwd: None,
        },
    )
}

fn surroundings() -> UpstreamSettings {
    UpstreamSettings {
        base_env: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), "/nowhere".into()),
        ],
        message_limits: MessageLimits::default(),
        eras: EraMemory::none(),
        abilities: ClientCapabilities::default().from_now_on(),
    }
}

pub(super) async fn connect(spec: ServerSpec) -> (Upstream, ServerListing) {
    let (upstream, mut listed) = Upstream::connect_all(vec![spec], &surroundings()).await;
    (upstream, listed.remove(0))
}

pub(super) async fn call(upstream: &Upstream) -> Reply {
    let (server, tool) = (ServerName("sh".into()), ToolName("t".into()));
    upstream
        .call(&server, &tool, b"{}".to_vec(), Duration::from_secs(600))
        .await
}

pub(super) fn stderr(upstream: &Upstream) -> String {
    upstream
        .diagnostics(&ServerName("sh".into()))
        .unwrap()
        .stderr
}

/// Waits for an event outside of this process.
async fn until(mut happened: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(600) {
        if happened() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn child_gets_configured_environment_only() {
    let mut spec = shell(SERVER.replace(
        "CALL",
        &text("$HOME $GIVEN $(env | cut -d= -f1 | sort | tr '\\n' ' ')"),
    ));
    if let Transport::Stdio { env, .. } = &mut spec.transport {
        env.push(("GIVEN".into(), Secret::new("word")));
    }
    let (upstream, _) = connect(spec).await;
    let said = words(&call(&upstream).await);
    assert!(said.starts_with("/nowhere word "), "{said}");
    for name in said.split(' ').skip(2).filter(|name| !name.is_empty()) {
        assert!(
            ["GIVEN", "HOME", "PATH", "PWD", "OLDPWD", "SHLVL", "_"].contains(&name),
            "{name} in {said}"
        );
    }
}

#[tokio::test]
async fn stderr_is_kept_with_credentials_masked() {
    let mut spec = shell(SERVER.replace(
        "CALL",
        &format!("echo \"token is $TOKEN\" >&2; {}", text("done")),
    ));
    if let Transport::Stdio { env, .. } = &mut spec.transport {
        env.push(("TOKEN".into(), Secret::new("s3cr3t-value")));
    }
    let (upstream, _) = connect(spec).await;
    assert_eq!(words(&call(&upstream).await), "done");
    assert!(
        until(|| stderr(&upstream).contains("token is ***")).await,
        "{}",
        stderr(&upstream)
    );
}

#[tokio::test]
async fn secret_argument_is_masked_in_stderr() {
    let mut spec = shell("echo \"bad flag: $0\" >&2; exit 3".to_owned());
    if let Transport::Stdio { args, .. } = &mut spec.transport {
        args.push("--token=tok-987".into());
    }
    spec.hidden = vec![Secret::new("tok-987")];
    let (_, listed) = connect(spec).await;
    let failure = listed.failure.unwrap().to_string();
    assert!(failure.contains("bad flag: --token=***"), "{failure}");
}

#[tokio::test]
async fn child_that_dies_in_a_call_is_restarted() {
    let (upstream, _) = connect(shell(SERVER.replace("CALL", "exit 7"))).await;
    for _ in 0..2 {
        let Reply::Lost { why, .. } = call(&upstream).await else {
            panic!()
        };
        assert!(why.contains("exit code 7"), "{why}");
    }
    assert_eq!(
        upstream
            .diagnostics(&ServerName("sh".into()))
            .unwrap()
            .connects_total,
        2
    );
}

/// A server that allows only one process at a time, and that takes a while to end.
const ALONE: &str = r#"
mkdir lock 2>/dev/null || exit 9
trap 'sleep 0.2; rmdir lock' EXIT
"#;

#[tokio::test]
async fn server_restarts_only_after_old_process_is_gone() {
    let scratch = TempDir::new();
    // The server refuses `initialize`, although the older era was remembered for it, so it is
    // started a second time.
    let script = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  case $line in
    *'"server/discover"'*) say '"result":{"supportedVersions":["2026-07-28"]}' ;;
    *'"tools/list"'*) say '"result":{"tools":[]}' ;;
    *) say '"error":{"code":-32601,"message":"no"}' ;;
  esac
done
"#;
    let mut spec = shell(format!("{ALONE}{script}"));
    spec.timeouts.close_grace = Duration::from_secs(300);
    if let Transport::Stdio { cwd, .. } = &mut spec.transport {
        *cwd = Some(scratch.path().to_owned());
    }
    let surroundings = UpstreamSettings {
        eras: EraMemory::new(|_| Some(Era::Legacy), |_, _| ()),
        ..surroundings()
    };
    let (upstream, listed) = Upstream::connect_all(vec![spec], &surroundings).await;
    assert_eq!(listed[0].failure, None);
    assert_eq!(listed[0].era, Some(Era::Modern));
    upstream.close().await;
    assert!(!scratch.path().join("lock").exists());
}

#[tokio::test]
async fn close_kills_child_and_descendants() {
    // The grandchildren outlive their parent, and one of them ignores SIGTERM.
    let script =
        "sleep 300 & echo $! >&2; sh -c 'trap \"\" TERM; echo $$ >&2; while :; do sleep 1; done' &";
    let (upstream, listed) =
        connect(shell(format!("{script}\n{}", SERVER.replace("CALL", ":")))).await;
    assert_eq!(listed.failure, None);
    assert!(until(|| stderr(&upstream).lines().count() == 2).await);
    let pids: Vec<String> = stderr(&upstream).lines().map(ToOwned::to_owned).collect();
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    let begun = Instant::now();
    upstream.close().await;
    assert!(
        until(|| !pids.iter().any(|pid| is_alive(pid))).await,
        "{pids:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(250));
}

#[tokio::test]
async fn drop_kills_children() {
    let (upstream, _) = connect(shell(format!(
        "echo $$ >&2; trap '' TERM\n{}",
        SERVER.replace("CALL", ":")
    )))
    .await;
    assert!(until(|| !stderr(&upstream).is_empty()).await);
    let pid = stderr(&upstream);
    drop(upstream);
    assert!(until(|| !is_alive(&pid)).await);
}

#[test]
fn runtime_shutdown_kills_children() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (upstream, pid) = runtime.block_on(async {
        let (upstream, _) = connect(shell(format!(
            "echo $$ >&2\n{}",
            SERVER.replace("CALL", ":")
        )))
        .await;
        assert!(until(|| !stderr(&upstream).is_empty()).await);
        let pid = stderr(&upstream);
        (upstream, pid)
    });
    drop(runtime);
    let begun = Instant::now();
    while is_alive(&pid) && begun.elapsed() < Duration::from_secs(600) {
        std::thread::yield_now();
    }
    assert!(!is_alive(&pid));
    drop(upstream);
}

#[tokio::test]
async fn unusable_command_reports_reason_without_arguments() {
    for (command, script, parts) in [
        (
            "no-such-command-here",
            "",
            vec!["`no-such-command-here` cannot be started"],
        ),
        (
            "sh",
            "echo 'cannot find --token' >&2; exit 3",
            vec!["exit code 3", "cannot find --token"],
        ),
        (
            "sh",
            "cat >/dev/null",
            vec!["did not finish connecting within 700 ms"],
        ),
        (
            "sh",
            "echo hello",
            vec![
                "exit code 0",
                "on its stdout is not a JSON-RPC message: hello",
            ],
        ),
    ] {
        let mut spec = shell(format!("{script} #secret-argument"));
        // Only this server never answers, so its time limits are short.
        if script.starts_with("cat") {
            spec.timeouts.connect = Duration::from_millis(700);
            spec.timeouts.probe = Duration::from_millis(200);
        }
        if let Transport::Stdio {
            command: configured,
            ..
        } = &mut spec.transport
        {
            command.clone_into(configured);
        }
        let (_, listed) = connect(spec).await;
        let failure = listed.failure.unwrap();
        for part in parts {
            assert!(failure.to_string().contains(part), "{failure}");
        }
        assert!(!failure.to_string().contains("secret-argument") && !failure.next().is_empty());
    }
}
