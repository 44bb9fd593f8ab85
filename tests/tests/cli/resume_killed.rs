//! Kills runs by SIGKILL at the N-th `write` and `fdatasync`, resumes them, and kills those runs too.
//! Whatever dies, no call is made more often than the script asks for it. `strace` injects the signal;
//! without it, the tests print one `SKIP:` line and pass. `AIRLOCK_KILLS=1000` sets the number of kills
//! for both servers together.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use tests::binary::airlock;
use tests::command::{CommandOutput, Home, start};
use tests::counting;
use tests::counting_http::CountingHttpServer;
use tests::patience::wait_until;

/// Kills without `AIRLOCK_KILLS`.
const KILLS: usize = 24;
/// Numbers of system calls up to which a run is killed. Longer runs end by themselves.
const WRITES_MAX: usize = 26;
const SYNCS_MAX: usize = 7;
/// Maximum number of runs of one chain.
const RUNS_MAX: usize = 20;

const SCRIPT: &str = "const create = (n) => w.create({title: `${input}-${n}`});
await create(0);
await create(1);
await Promise.all([create(2), create(3)]);
return 'all';";
const TITLES: usize = 4;

enum Server {
    Stdio,
    Http(CountingHttpServer),
}

struct Stage {
    home: Home,
    server: Server,
    config: PathBuf,
    killed: usize,
    /// The number of calls with an unknown outcome.
    settled: usize,
    /// The number of runs, which determines where the next run is killed.
    runs: usize,
}

impl Stage {
    fn new(server: Server) -> Self {
        let home = Home::new();
        let config = match &server {
            Server::Stdio => counting::config(&home, "server.sh", ""),
            Server::Http(server) => server.config(),
        };
        let config = home.write("airlock.toml", config);
        Self {
            home,
            server,
            config,
            killed: 0,
            settled: 0,
            runs: 0,
        }
    }

    /// Returns the titles of the calls that the server got. No process of an earlier run is left.
    fn made(&self) -> Vec<String> {
        match &self.server {
            Server::Stdio => {
                wait_until(|| !is_any_left(&self.home));
                counting::made(&self.home)
            }
            Server::Http(server) => server.made(),
        }
    }

    fn args(&self, more: &[&str]) -> Vec<String> {
        let config = self.config.to_str().unwrap();
        let args = ["run", "--json", "--config", config, "--allow", "w.*"];
        args.iter().chain(more).map(|it| (*it).to_owned()).collect()
    }

    /// Runs airlock, and kills it at the next system call of the plan.
    fn killed(&mut self, more: &[&str]) -> CommandOutput {
        let (call, number) = match self.runs % 3 {
            2 => ("fdatasync", 1 + self.runs / 3 % SYNCS_MAX),
            _ => ("write", 1 + self.runs * 7 % WRITES_MAX),
        };
        self.runs += 1;
        let mut command = Command::new("strace");
        // Servers run untraced: strace leaves a process when it executes another program.
        command.args(["-f", "-b", "execve", "-qqq", "-o", "/dev/null"]);
        command.arg("-e").arg(format!("trace={call}"));
        command
            .arg("-e")
            .arg(format!("inject={call}:signal=SIGKILL:when={number}"));
        command.arg(airlock()).args(self.args(more));
        self.home.dress(&mut command);
        let output = start(&mut command, "").wait();
        self.killed += usize::from(output.code.is_none());
        output
    }

    /// Returns the newest run whose journal has at least a header. The others did nothing.
    fn newest(&self) -> Option<String> {
        let journals = self.home.journals().into_iter().rev();
        let mut begun = journals.filter(|path| fs::read(path).unwrap().contains(&b'\n'));
        let path = begun.next()?;
        Some(path.file_stem().unwrap().to_str().unwrap().to_owned())
    }

    /// States truthfully what became of the indeterminate calls of a chain.
    fn settle(&mut self, run: &str, made: &[String]) {
        let listed = self.home.run(self.args(&["--resume", run, "--dry-run"]));
        let listed = listed.expect_code(0).json();
        for call in listed["calls"].as_array().unwrap() {
            if call["would"] != "indeterminate" {
                continue;
            }
            let title = call["args"]["title"].as_str().unwrap();
            let at = call["at"].as_str().unwrap();
            let mut args = vec!["runs", "resolve", at];
            args.extend(match made.iter().any(|it| it == title) {
                true => &["happened", "--result", "\"stated\""][..],
                false => &["did-not-happen"],
            });
            self.home.run(args).expect_code(0);
            self.settled += 1;
        }
    }

    /// Runs the script until it is done, and kills its runs `kills` times if they reach that point.
    fn chain(&mut self, kills: usize) {
        let name = format!("c{}", self.runs);
        let input = json!(name).to_string();
        let before = self.newest();
        let killed_before = self.killed;
        for _ in 0..RUNS_MAX {
            let newest = self.newest().filter(|it| Some(it) != before.as_ref());
            let made = self.made();
            let args = match &newest {
                Some(run) => {
                    self.settle(run, &made);
                    vec!["--resume", run]
                }
                None => vec!["--input", &input, "-e", SCRIPT],
            };
            let output = match self.killed < killed_before + kills {
                true => self.killed(&args),
                false => self.home.run(self.args(&args)),
            };
            match output.code {
                Some(0) => return self.check(&name, &output),
                // The server lost a reply, or the run was killed.
                Some(20) | None => {}
                _ => panic!("{output}"),
            }
        }
        panic!("{name} is not done after {RUNS_MAX} runs");
    }

    fn check(&self, name: &str, output: &CommandOutput) {
        assert_eq!(output.json()["value"], "all", "{output}");
        let made = self.made();
        for number in 0..TITLES {
            let title = format!("{name}-{number}");
            let times = made.iter().filter(|it| **it == title).count();
            assert_eq!(times, 1, "{title}: {output}");
        }
    }

    /// Verifies all journals. Those of killed runs are incomplete or not signed.
    fn verify(&self) {
        let verified = self.home.run(["runs", "verify"]);
        assert!(matches!(verified.code, Some(0 | 26 | 27)), "{verified}");
    }
}

/// Whether a process with this home still runs.
fn is_any_left(home: &Home) -> bool {
    let home = format!("HOME={}\0", home.path().display());
    let is_of_home = |entry: fs::DirEntry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&home)
    };
    fs::read_dir("/proc").unwrap().flatten().any(is_of_home)
}

fn is_strace_there() -> bool {
    let found = Command::new("strace").arg("--version").output();
    let is_there = found.is_ok_and(|it| it.status.success());
    if !is_there {
        eprintln!("SKIP: kills at system calls: strace is not installed");
    }
    is_there
}

fn kills() -> usize {
    let kills = std::env::var("AIRLOCK_KILLS").ok();
    kills.and_then(|it| it.parse().ok()).unwrap_or(KILLS) / 2
}

fn kill_everywhere(server: Server) {
    if !is_strace_there() {
        return;
    }
    let mut stage = Stage::new(server);
    let mut chains = 0;
    while stage.killed < kills() {
        stage.chain(1 + chains % 3);
        chains += 1;
    }
    stage.verify();
    eprintln!(
        "{} kills in {chains} chains, {} runs, {} unknown outcomes",
        stage.killed,
        stage.home.journals().len(),
        stage.settled,
    );
}

#[test]
fn killed_runs_repeat_no_call_to_a_stdio_server() {
    kill_everywhere(Server::Stdio);
}

#[test]
fn killed_runs_repeat_no_call_to_an_http_server_that_loses_replies() {
    kill_everywhere(Server::Http(CountingHttpServer::start()));
}
