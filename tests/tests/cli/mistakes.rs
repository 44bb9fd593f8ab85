//! Mistakes at the terminal. Each answer has a `next:` line. The test does literally what that line
//! says, and repeats this with the following answer until the command succeeds.

use std::net::TcpListener;

use rustix::process::Signal;
use tests::command::{CommandOutput, Home, start};
use tests::patience::wait_until;

/// Maximum number of answers until a command must succeed.
const STEPS_MAX: usize = 4;

/// A mistake: a command, and the word or the text in it that is wrong.
struct Mistake {
    command: &'static str,
    wrong: &'static str,
    /// The file that contains the wrong text, if the command line does not.
    file: Option<&'static str>,
    /// What a person does if the answer describes something outside of the command: a part of the
    /// `next:` line, and the command that the person then types.
    by_hand: Option<(&'static str, &'static str)>,
    /// The exit code at the end.
    code: i32,
}

fn mistake(command: &'static str, wrong: &'static str) -> Mistake {
    Mistake {
        command,
        wrong,
        file: None,
        by_hand: None,
        code: 0,
    }
}

impl Mistake {
    fn in_file(self, file: &'static str) -> Self {
        let file = Some(file);
        Self { file, ..self }
    }

    /// If the `next:` line contains `says`, the person types `command`.
    fn then(self, says: &'static str, command: &'static str) -> Self {
        let by_hand = Some((says, command));
        Self { by_hand, ..self }
    }
}

fn commands_and_flags() -> Vec<Mistake> {
    vec![
        mistake("rnu triage.js", "rnu"),
        mistake("servres --demo", "servres"),
        mistake("policy chekc policies --demo", "chekc"),
        mistake("runs lst", "lst"),
        mistake("version", "version"),
        mistake("frobnicate", "").then("`airlock --help`", "--help"),
        mistake("man rnu", "rnu"),
        mistake("completions bsh", "bsh"),
        mistake("completions", "").then("add <SHELL>, which is `bash`", "completions bash"),
        mistake("servers --stder --demo", "--stder"),
        mistake("servers --config airlok.toml", "airlok.toml"),
        mistake("servers --mcp-config sevrers.json --demo", "sevrers.json"),
        mistake("run triage.js --alow demo.*", "--alow"),
        mistake("run triage.js --dmeo", "--dmeo"),
        mistake("run triage.js --frobnicate", ""),
        mistake("run triage.js extra", ""),
        mistake("run triage.js --demo --demo", "--demo"),
        mistake("run triage.js --no-ask --approver never", "")
            .then("remove `--no-ask`", "run triage.js --approver never"),
        mistake("run triage.js --watch -e 1", "").then("remove `--watch`", "run -e 1"),
        mistake("run triage.js -e 1", "").then("remove `-e`", "run triage.js"),
        mistake("run", "").then("`airlock run -e", "run -e 'return 1 + 1'"),
        mistake("run - --watch", "").then("`airlock run FILE --watch`", "run triage.js"),
        mistake("runs show", "").then("add <RUN>", "runs show RUN"),
        mistake("policy check", "").then("name a folder, or add", "policy check policies --demo"),
        mistake("sessions declassify s private", "")
            .then("--by <PERSON>", "sessions declassify work private --by Ann"),
    ]
}

/// Mistakes about recorded runs. In the home, PAUSED is a run whose first call waits for an answer,
/// and LOST a run that was killed, so that the outcome of its first call is unknown.
fn recorded_runs() -> Vec<Mistake> {
    let list =
        |command: &'static str| mistake(command, "").then("`airlock runs list`", "runs list");
    let waiting =
        |command: &'static str| mistake(command, "").then("`airlock runs waiting`", "runs waiting");
    vec![
        list("run --resume zzz"),
        list("run triage.js --resume zzz"),
        list("run ask.js --demo --resume zzz --dry-run"),
        list("runs answer zzz:1 allow"),
        list("runs resolve zzz:1 happened"),
        list("runs verify zzz"),
        waiting("runs answer PAUSED allow"),
        waiting("runs answer PAUSED:9 allow"),
        waiting("runs answer RUN:1 allow"),
        waiting("runs resolve LOST happened"),
        waiting("runs resolve LOST:9 happened"),
        waiting("runs resolve PAUSED:1 happened"),
        mistake("runs answer", "").then("add <CALL>", "runs waiting"),
        mistake("runs answer PAUSED:1 alow", "alow"),
        mistake("runs answer PAUSED:1 yes", "yes"),
        mistake("runs resolve LOST:1", "").then(
            "add <OUTCOME>, which is `happened` or `did-not-happen`",
            "runs resolve LOST:1 did-not-happen",
        ),
        mistake("runs resolve LOST:1 hapened", "hapened"),
        mistake("runs resolve LOST:1 happened --result {a:1}", "{a:1}").then(
            "write JSON, such as --result '{\"a\": 1}'",
            "runs resolve LOST:1 happened --result '{\"value\": 1}'",
        ),
        mistake(
            "runs resolve LOST:1 happened --result @reslut.json",
            "reslut.json",
        )
        .then(
            "did you mean `result.json`?",
            "runs resolve LOST:1 happened --result @result.json",
        ),
        mistake("runs prune", ""),
        mistake("runs prune --keep soon", "soon"),
        mistake("runs prune --keep 720h --dry-rnu", "--dry-rnu"),
        mistake("runs waitng", "waitng"),
        mistake("runs waiting extra", ""),
        mistake("runs list --status don", "don"),
        mistake("runs list --since yestrday", "yestrday"),
        mistake("runs list --tool tickets", "tickets")
            .then("such as tickets.*", "runs list --tool demo.*"),
        mistake(
            "run --resume PAUSED --same-server demoo --demo --allow demo.*",
            "demoo",
        ),
        mistake("run triage.js --dry-run", "").then(
            "add --resume <RUN>",
            "run ask.js --demo --resume PAUSED --dry-run",
        ),
    ]
}

fn values() -> Vec<Mistake> {
    vec![
        mistake("run triage.js --check stpo", "stpo"),
        mistake("types --demo --detail everything", "everything"),
        mistake("run triage.js --fsync alway", "alway"),
        mistake("run triage.js --unknown-keys forgive", "forgive"),
        mistake("run triage.js --engine bao", "bao"),
        mistake("run triage.js --approver nevr", "nevr"),
        mistake("run triage.js --seed seven", "seven"),
        mistake("runs list --number few", "few"),
        mistake("run triage.js --timeout 5", "5"),
        mistake("run triage.js --memory 3", "3"),
        mistake("run triage.js --max-calls some", "some"),
        mistake("run triage.js --limit tiemout=5s", "tiemout"),
        mistake("run triage.js --session 'a b'", "a b"),
        mistake("run triage.js --input {a:1}", "{a:1}").then(
            "write JSON, such as --input '{\"a\": 1}'",
            "run triage.js --input '{\"a\": 1}'",
        ),
        mistake("sessions declassify work privat --by Ann", "privat"),
        mistake("run triage.js --demo --allow nodot", "nodot")
            .then("'fs.read_*'", "run triage.js --demo --allow 'demo.logs_*'"),
        mistake("policy check policies --demo --except permit-unscopd", "").then(
            "did you mean `permit-unscoped`?",
            "policy check policies --demo",
        ),
    ]
}

fn names() -> Vec<Mistake> {
    vec![
        mistake("servers demoo --demo", "demoo"),
        mistake("descriptions pull demoo --demo", "demoo"),
        mistake("types --demo demo.logs_qery", "logs_qery"),
        mistake("policy can demo.logs_qery --demo --auto", "logs_qery"),
        mistake("policy can demo.frobnicate --demo --auto", "").then(
            "`airlock types --detail names`",
            "types --detail names --demo",
        ),
        mistake("runs show zzz", "").then("`airlock runs list`", "runs list"),
        mistake("grants show zzz", "").then("`airlock grants list --all`", "grants list --all"),
        mistake(
            "run -e 'return demon.logs_services({})' --demo --allow demo.*",
            "demon",
        ),
        mistake(
            "run -e 'return demo.logs_servces({})' --demo --allow demo.*",
            "logs_servces",
        ),
        mistake("run -e 'return demo.logs_services({})' --allow demo.*", ""),
        mistake("run -e 'return demo.logs_services({})' --demo", ""),
        mistake("serve --offer demoo.prompts --demo", "demoo"),
        mistake("servers", ""),
        mistake("lock", ""),
        mistake("descriptions pull", ""),
    ]
}

fn files() -> Vec<Mistake> {
    vec![
        mistake("run triag.js", "triag.js"),
        mistake("check triage.ts", "triage.ts"),
        mistake("run triage.js --input @inptu.json", "inptu.json"),
        mistake("run triage.js --mcp-config sevrers.json", "sevrers.json"),
        mistake("run triage.js --config airlok.toml", "airlok.toml"),
        mistake("run triage.js --labels lables.toml", "lables.toml"),
        mistake("policy check polices --demo", "polices"),
        mistake("policy test polices", "polices"),
        mistake("run triage.js --demo --lock nowhere.lock", "").then(
            "`airlock lock` with the same server flags",
            "lock --demo --lock nowhere.lock",
        ),
        mistake("lock --check --demo", "")
            .then("`airlock lock` with the same server flags", "lock --demo"),
        mistake("descriptions check --demo", "")
            .then("`airlock descriptions pull`", "descriptions pull --demo"),
        mistake("policy init policies --demo", "")
            .then("`airlock policy init FOLDER`", "policy init other --demo"),
    ]
}

fn json_and_toml() -> Vec<Mistake> {
    vec![
        mistake("run triage.js --config keys.toml", "comand").in_file("keys.toml"),
        mistake("run triage.js --config label.toml", "privat").in_file("label.toml"),
        mistake("run triage.js --demo --config tool.toml", "tickets_lst").in_file("tool.toml"),
        mistake("run triage.js --config limit.toml", "tiemout").in_file("limit.toml"),
        mistake("run triage.js --config approver.toml", "nevr").in_file("approver.toml"),
        mistake("run triage.js --mcp-config list.json", "").then(
            "write {\"mcpServers\":",
            "run triage.js --mcp-config servers.json",
        ),
        mistake("run triage.js --mcp-config broken.json", "").then(
            "correct the file",
            "run triage.js --mcp-config servers.json",
        ),
        mistake("policy test wrong-case", "alow").in_file("wrong-case/x.cases.toml"),
    ]
}

fn servers() -> Vec<Mistake> {
    let mut mistakes = vec![
        mistake("run triage.js --server nosuch", "")
            .then("write NAME=COMMAND", "run triage.js --demo"),
        mistake("run triage.js --server 9x='AIRLOCK demo-server'", "9x"),
        mistake("run triage.js --server gone=no-such-program", ""),
        mistake("run triage.js --server gone=http://CLOSED/mcp", ""),
        mistake("run triage.js --config hangs.toml", ""),
        mistake(
            "run triage.js --server \"dies=sh -c 'echo no license >&2; exit 3'\"",
            "",
        ),
        mistake(
            "run triage.js --server \"junk=sh -c 'echo hello; cat'\"",
            "",
        ),
        mistake("types --server gone=no-such-program", ""),
        mistake("check triage.js --server gone=no-such-program", ""),
        mistake("servers --demo --server gone=no-such-program", "")
            .then("check the spelling of the command", "servers --demo"),
    ];
    // The answer to a server that ends names the command that shows why.
    mistakes.push(
        mistake("run triage.js --server \"dies=sh -c 'echo no license >&2; exit 3'\"", "").then(
            "`airlock servers --stderr` with the same server flags",
            "servers --stderr --skip-unreachable --server \"dies=sh -c 'echo no license >&2; exit 3'\"",
        ),
    );
    mistakes
}

/// Returns a home with files that the right commands need, and a recorded run of a session.
fn home() -> Home {
    let home = Home::new();
    home.write("triage.js", "return 1");
    home.write("ask.js", "return await demo.tickets_create({title: 'x'})");
    home.write(
        "slow.js",
        "return await demo.slow_echo({value: 'x', ms: 60_000})",
    );
    home.write("input.json", "{}");
    home.write("result.json", "{\"value\": 1}");
    home.write("servers.json", r#"{"mcpServers": {}}"#);
    home.write("list.json", r#"{"mcpServers": []}"#);
    home.write("broken.json", "{");
    home.write("airlock.toml", "");
    home.write("labels.toml", "");
    let demo = tests::binary::airlock().display().to_string();
    let keys = format!("[servers.own]\ncomand = \"{demo}\"\nargs = [\"demo-server\"]\n");
    home.write("keys.toml", keys);
    home.write("label.toml", "input_reads = [\"privat\"]\n");
    home.write(
        "tool.toml",
        "[labels.demo.tools.tickets_lst]\nwrites = []\n",
    );
    home.write("limit.toml", "[limits]\ntiemout = \"5s\"\n");
    home.write("approver.toml", "approver = \"nevr\"\n");
    let hangs = "[servers.hangs]\ncommand = \"sleep 600\"\nconnect_timeout = \"300ms\"\n";
    home.write("hangs.toml", hangs);
    let rules = "@id(\"r\")\n@owner(\"o\")\n@reason(\"no\")\n@prompt(\"May it?\")\n\
                 permit(principal, action, resource) when { context.approval >= 1 };\n";
    home.write("policies/rules.cedar", rules);
    let case = "[tools.\"a.b\"]\n[[cases]]\nname = \"x\"\ntool = \"a.b\"\nlevel = \"ask\"\n";
    home.write("policies/rules.cases.toml", case);
    home.write("wrong-case/x.cedar", rules);
    let wrong = case.replace("\"ask\"", "\"ask\"\nfacts = { alow = true }");
    home.write(
        "wrong-case/x.cases.toml",
        wrong.replace("alow", "lables").replace("true", "[]"),
    );
    // A session that has read private data, for `sessions declassify`.
    home.write("private.toml", "input_reads = [\"private\"]\n");
    let words = "run triage.js --input {} --session work --config private.toml";
    home.run(words.split(' ')).expect_code(0);
    home
}

/// Records a run whose first call waits for an answer.
fn pause_run(home: &Home) {
    let words = "run ask.js --demo --ask demo.* --approver later";
    home.run(words.split(' ')).expect_code(23);
}

/// Records a run that was killed during its first call.
fn kill_run(home: &Home) {
    let words = "run slow.js --demo --allow demo.*";
    let started = start(&mut home.airlock(words.split(' ')), "");
    let is_sent = || {
        let journals = home.journals();
        let text = journals.get(1).map(std::fs::read_to_string);
        text.is_some_and(|it| it.is_ok_and(|it| it.contains("\"decided\"")))
    };
    wait_until(is_sent);
    started.signal(Signal::KILL);
    let _killed = started.wait();
}

#[test]
fn each_next_line_leads_on() {
    let all = [
        commands_and_flags(),
        recorded_runs(),
        values(),
        names(),
        files(),
        json_and_toml(),
        servers(),
    ];
    let all: Vec<Mistake> = all.into_iter().flatten().collect();
    assert!(all.len() >= 60, "only {} mistakes", all.len());
    let mut failures = Vec::new();
    for mistake in &all {
        let home = home();
        let uses = |run| {
            let by_hand = mistake
                .by_hand
                .is_some_and(|(_, command)| command.contains(run));
            mistake.command.contains(run) || by_hand
        };
        if uses("PAUSED") {
            pause_run(&home);
        } else if uses("LOST") {
            kill_run(&home);
        }
        if let Err(why) = leads_on(&home, mistake) {
            failures.push(format!("airlock {}\n{why}", mistake.command));
        }
    }
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{count} of {} fail:\n\n{}",
        all.len(),
        failures.join("\n\n")
    );
}

#[test]
fn relative_home_is_named_with_the_flag_that_helps() {
    let home = Home::new();
    home.write("a.js", "return 1");
    let mut command = home.airlock(["run", "a.js"]);
    command.env("HOME", "relative");
    let ended = tests::command::start(&mut command, "")
        .wait()
        .expect_code(30);
    assert!(ended.stderr.contains("HOME is `relative`"), "{ended}");
    let next = next_of(&ended).unwrap();
    assert!(next.contains("add `--state-dir FOLDER`"), "{ended}");
    let mut command = home.airlock(["run", "a.js", "--state-dir", "state"]);
    command.env("HOME", "relative");
    tests::command::start(&mut command, "")
        .wait()
        .expect_code(0);
}

/// Follows the answers until the command succeeds.
fn leads_on(home: &Home, mistake: &Mistake) -> Result<(), String> {
    let mut words = split(&known(home, mistake.command));
    let mut told = String::new();
    for step in 0..=STEPS_MAX {
        let ended = home.run(&words);
        told.push_str(&format!("$ airlock {}\n{ended}\n", words.join(" ")));
        // Commands that list things end with 0 even if a name matches nothing.
        let next = next_of(&ended);
        let answers = ["error:", "no tool matches", " next: add"];
        let is_answer = answers.iter().any(|it| ended.stderr.contains(it));
        if ended.code == Some(mistake.code) && !is_answer {
            return match step {
                0 => Err(format!("it is no mistake\n{told}")),
                _ => Ok(()),
            };
        }
        let Some(next) = next else {
            return Err(format!("no `next:` line\n{told}"));
        };
        let before = words.clone();
        let changed = follow(home, mistake, &next, &mut words);
        if !changed && before == words {
            return Err(format!("`{next}` cannot be followed\n{told}"));
        }
    }
    Err(format!("it never succeeds\n{told}"))
}

/// Does what a `next:` line says. Returns whether a file was changed.
fn follow(home: &Home, mistake: &Mistake, next: &str, words: &mut Vec<String>) -> bool {
    if let Some((says, command)) = mistake.by_hand
        && next.contains(says)
    {
        *words = split(&known(home, command));
        return false;
    }
    if let Some(meant) = after(next, "id you mean `").or_else(|| literal(next)) {
        return replace(home, mistake, &meant, words);
    }
    if let Some(useless) = after(next, "remove `") {
        words.retain(|word| *word != useless);
    } else if let Some(once) = after(next, "` once").and_then(|_| after(next, "write `")) {
        let at = words.iter().rposition(|word| *word == once);
        at.map(|at| words.remove(at));
    } else if let Some((_, flag)) = next.split_once("add ") {
        let flag = flag.trim_start_matches('`');
        let flag = flag.split([',', ';', '`']).next().unwrap_or_default();
        let flag = flag.split(" or ").next().unwrap_or_default();
        let flag = flag.split(" to ").next().unwrap_or_default();
        let server = format!("'demo={} demo-server'", tests::binary::airlock().display());
        words.extend(split(&flag.replace("NAME=COMMAND", &server)));
    } else if let Some((_, flag)) = next.split_once("allow it with ") {
        words.extend(split(flag));
    }
    false
}

/// Returns the value that a `next:` line tells to write.
fn literal(next: &str) -> Option<String> {
    if let Some(example) = after(next, "such as `") {
        return Some(example);
    }
    let is_once = next.contains("` once");
    let value = after(next, "write `").or_else(|| after(next, "write a value from `"));
    let renamed = after(next, "rename the server to `");
    value.filter(|_| !is_once).or(renamed)
}

/// Replaces what is wrong, in the command or in a file.
fn replace(home: &Home, mistake: &Mistake, meant: &str, words: &mut [String]) -> bool {
    if let Some(name) = mistake.file {
        let text = std::fs::read_to_string(home.path().join(name)).unwrap();
        let wrong = if text.contains(mistake.wrong) {
            mistake.wrong
        } else {
            "lables"
        };
        home.write(name, text.replace(wrong, meant));
        return true;
    }
    // A whole name replaces a part of it: `demo.logs_query` for `logs_qery`.
    let part = meant.rsplit_once('.').map_or(meant, |(_, part)| part);
    let mut words_with_mistake = words.iter_mut().filter(|word| word.contains(mistake.wrong));
    if let Some(word) = words_with_mistake.next() {
        *word = match word.contains('.') && meant.contains('.') && !meant.contains('/') {
            true if *word == mistake.wrong => meant.to_owned(),
            true if word.ends_with(mistake.wrong) && !word.starts_with('@') => {
                word.replace(mistake.wrong, part)
            }
            _ => word.replace(mistake.wrong, meant),
        };
    }
    false
}

/// Returns the text between `before` and the next backquote.
fn after(text: &str, before: &str) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    let (word, _) = rest.split_once('`')?;
    Some(word.to_owned())
}

/// Returns the `next:` line of an answer. If the script was not started, the correction is in the
/// `why:` line; a list without entries explains itself in one line.
fn next_of(ended: &CommandOutput) -> Option<String> {
    let line = |label: &str| {
        let mut lines = ended.stderr.lines().chain(ended.stdout.lines());
        let line = lines.find_map(|line| line.trim_start().strip_prefix(label));
        line.map(|line| line.trim().to_owned())
    };
    match line("next:") {
        Some(next) if next == "correct the script" => line("why:"),
        Some(next) => Some(next),
        None => line("no tool matches"),
    }
}

/// Splits a command line at spaces outside of quotes.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for c in text.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ' ' => words.push(String::new()),
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Replaces the words that stand for something of this machine.
fn known(home: &Home, text: &str) -> String {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let runs: Vec<String> = home
        .journals()
        .iter()
        .map(|it| it.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let later = |at: usize| runs.get(at).unwrap_or(&runs[0]);
    text.replace("AIRLOCK", &tests::binary::airlock().display().to_string())
        .replace("CLOSED", &closed.unwrap().to_string())
        .replace("RUN", &runs[0])
        .replace("PAUSED", later(1))
        .replace("LOST", later(1))
}
