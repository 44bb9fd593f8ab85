//! Tests logins to servers: `airlock login`, the stored login, and its renewal.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tests::command::{CommandOutput, Home, start};
use tests::login_server::{LoginServer, get};
use tests::patience::wait_until;
use tests::typing::act_at;

pub(crate) const FILE_KEY: &str = "\n[oauth]\nkeys = \"file\"\n";

fn configured(server: &LoginServer) -> Home {
    let home = Home::new();
    home.write("airlock.toml", server.config() + FILE_KEY);
    home
}

fn log_in(home: &Home, server: &LoginServer, more: &[&str]) -> String {
    log_in_to("w", home, server, more)
}

/// Logs in without a browser: reads the address, and pastes the answer.
pub(crate) fn log_in_to(name: &str, home: &Home, server: &LoginServer, more: &[&str]) -> String {
    let args = ["login", name, "--config", "airlock.toml", "--no-browser"];
    let (code, stdout, stderr) = paste(home.airlock(args.iter().chain(more)), server);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    stdout
}

/// Runs `airlock login` to its end: the person pastes something else first. Returns the exit code,
/// stdout, and the rest of stderr.
fn paste(mut command: Command, server: &LoginServer) -> (Option<i32>, String, String) {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut read = lines.by_ref().map_while(Result::ok);
    let address = read.find(|it| it.contains("/authorize?"));
    let answer = server.approve(address.expect("an address").trim());
    writeln!(child.stdin.take().unwrap(), "nonsense\n{answer}").unwrap();
    let rest: String = lines.map_while(Result::ok).collect();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), stdout, rest)
}

/// Returns the advice to the person at the terminal.
fn next(home: &Home, server: &str) -> String {
    let config = home.path().join("airlock.toml");
    format!("run `airlock login {server} --config {}`", config.display())
}

/// Returns `airlock` with its own `secret-tool` on PATH.
fn with_tool<const N: usize>(home: &Home, tool: &str, args: [&str; N]) -> Command {
    use std::os::unix::fs::PermissionsExt as _;
    let path = home.write("bin/secret-tool", tool);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = home.airlock(args);
    let folder = path.parent().unwrap().display();
    command.env("PATH", format!("{folder}:/usr/bin:/bin"));
    command
}

fn call(home: &Home, calls: usize) -> tests::command::RunningCommand {
    let script = format!(
        "const all = Array.from({{length: {calls}}}, (_, at) => w.create({{title: `t${{at}}`}}));\n\
         const done = await Promise.all(all);\nconsole.log(JSON.stringify(done));\nreturn done.length;"
    );
    let args = ["run", "-", "--config", "airlock.toml", "--allow", "w.*"];
    start(&mut home.airlock(args), &script)
}

/// Searches for the secrets in the output and in every file of the home.
fn check_no_secret(home: &Home, server: &LoginServer, outputs: &[&CommandOutput]) {
    fn visit(folder: &Path, check: &mut dyn FnMut(&Path)) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.path().is_dir() {
                true => visit(&entry.path(), check),
                false => check(&entry.path()),
            }
        }
    }
    let secrets = server.secrets();
    assert!(secrets.len() >= 3, "{secrets:?}");
    for secret in &secrets {
        for output in outputs {
            assert!(!output.to_string().contains(secret), "{secret}\n{output}");
        }
        let mut files = 0;
        visit(home.path(), &mut |path| {
            files += 1;
            let bytes = std::fs::read(path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(secret), "{secret} in {}", path.display());
        });
        assert!(files > 2);
    }
}

#[test]
fn server_that_requires_the_login_only_for_its_list_names_the_command() {
    let server = LoginServer::start();
    server.open_handshake();
    let home = configured(&server);
    let refused = call(&home, 1).wait().expect_code(30);
    refused.expect_stderr(&next(&home, "w"));
    let shown = home.run(["servers", "--config", "airlock.toml"]);
    shown.expect_code(30).expect_stdout("login-required");
    log_in(&home, &server, &[]);
    call(&home, 1).wait().expect_code(0);
}

#[test]
fn login_by_paste_makes_calls_work_and_leaves_no_secret_in_clear() {
    let server = LoginServer::start();
    let home = configured(&server);
    let before = call(&home, 1).wait().expect_code(30);
    let before = before.expect_stderr("the server requires a login");
    let before = before.expect_stderr(&next(&home, "w"));
    let stdout = log_in(&home, &server, &[]);
    for part in [
        "logged in to `w`",
        "issuer:  http://127.0.0.1:",
        "key:     file",
    ] {
        assert!(stdout.contains(part), "{stdout}");
    }
    let done = call(&home, 3).wait().expect_code(0);
    assert_eq!(server.calls().len(), 3);
    assert!(done.stderr.contains("made with"), "{done}");
    let shown = home
        .run(["servers", "--config", "airlock.toml"])
        .expect_code(0);
    let shown = shown.expect_stdout("login: in 59 min, renewed without a person · issuer http");
    let json = home.run(["servers", "--config", "airlock.toml", "--json"]);
    let login = &json.json()["servers"][0]["login"];
    assert_eq!(
        (&login["renews"], &login["key"]),
        (&true.into(), &"file".into())
    );
    check_no_secret(&home, &server, &[&before, &done, &shown, &json]);
}

#[test]
fn eight_processes_renew_a_login_once() {
    let server = LoginServer::start();
    let home = configured(&server);
    log_in(&home, &server, &[]);
    server.expire_access();
    let running: Vec<_> = (0..8).map(|_| call(&home, 16)).collect();
    for running in running {
        running.wait().expect_code(0);
    }
    assert_eq!((server.renewals(), server.calls().len()), (1, 8 * 16));
    check_no_secret(&home, &server, &[]);
}

#[test]
fn slow_renewal_outlives_the_request_that_waits_for_it() {
    let server = LoginServer::start();
    let home = configured(&server);
    log_in(&home, &server, &[]);
    server.expire_access();
    // The first request of a connection waits at most 3 s.
    server.set_token_delay(Duration::from_secs(4));
    call(&home, 1).wait().expect_code(0);
    call(&home, 1).wait().expect_code(0);
    assert_eq!(server.renewals(), 1);
}

#[test]
fn airlock_stores_a_renewal_before_it_exits() {
    let server = LoginServer::start();
    let home = Home::new();
    let config = server.config() + "connect_timeout = \"1s\"\n" + FILE_KEY;
    home.write("airlock.toml", config);
    log_in(&home, &server, &[]);
    server.expire_access();
    // The refresh token is replaced at once, and the answer comes after the run has failed.
    server.set_token_delay(Duration::from_secs(4));
    let failed = call(&home, 1).wait().expect_code(30);
    failed.expect_stderr("did not finish connecting within 1000 ms");
    server.set_token_delay(Duration::ZERO);
    call(&home, 1).wait().expect_code(0);
    assert_eq!((server.renewals(), server.calls().len()), (1, 1));
}

#[test]
fn token_that_has_ended_is_not_sent() {
    let server = LoginServer::start();
    server.give_short_tokens(0);
    let home = configured(&server);
    log_in(&home, &server, &[]);
    let before = server.requests_for("/mcp");
    let ended = call(&home, 1).wait().expect_code(30);
    let ended = ended.expect_stderr("the token has ended, and there is no refresh token");
    ended.expect_stderr(&next(&home, "w"));
    assert_eq!(server.requests_for("/mcp"), before);
}

#[test]
fn plain_http_gets_no_login() {
    let server = LoginServer::start();
    let home = Home::new();
    // Not a loopback address, although it leads to this machine.
    home.write("airlock.toml", server.config_of("w", "0.0.0.0") + FILE_KEY);
    let refused = home.run(["login", "w", "--config", "airlock.toml", "--no-browser"]);
    let refused = refused
        .expect_code(30)
        .expect_stderr("has no https address");
    refused.expect_stderr("use the https address of the server");
    let client = "oauth = { client_id = \"c\", client_secret = \"secret-of-the-client\", \
                  issuer = \"https://login.example\", grant = \"client_credentials\" }\n";
    let config = server.config_of("w", "0.0.0.0") + client + FILE_KEY;
    home.write("airlock.toml", config);
    let refused = call(&home, 1).wait().expect_code(30);
    refused.expect_stderr("has no https address");
    for path in [
        "/token",
        "/register",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        assert!(!server.was_asked_for(path), "{path}");
    }
}

#[test]
fn two_servers_with_one_address_have_two_logins() {
    let server = LoginServer::start();
    let home = Home::new();
    let both = server.config() + &server.config_of("v", "127.0.0.1") + FILE_KEY;
    home.write("airlock.toml", both);
    log_in(&home, &server, &[]);
    let shown = home.run(["servers", "v", "--config", "airlock.toml"]);
    let shown = shown.expect_code(30).expect_stdout("login-required");
    shown.expect_stdout(&next(&home, "v"));
    home.run(["servers", "w", "--config", "airlock.toml"])
        .expect_code(0);
}

#[test]
fn client_logs_in_again_after_its_renewal_was_refused() {
    const SECRET: &str = "secret-of-the-client";
    let server = LoginServer::start();
    server.accept_client(SECRET);
    let home = Home::new();
    let client = format!(
        "oauth = {{ client_id = \"c\", client_secret = \"{SECRET}\", issuer = \"{}\", \
         grant = \"client_credentials\" }}\n",
        server.issuer()
    );
    home.write("airlock.toml", server.config() + &client + FILE_KEY);
    call(&home, 1).wait().expect_code(0);
    server.expire_access();
    call(&home, 1).wait().expect_code(0);
    server.expire_access();
    server.move_token_endpoint();
    call(&home, 1).wait().expect_code(0);
    assert_eq!(server.calls().len(), 3);
    assert!(server.was_asked_for("/moved/token"));
    // A token that ends at once is replaced before each request.
    server.give_short_tokens(0);
    server.expire_access();
    call(&home, 1).wait().expect_code(0);
    assert_eq!(server.calls().len(), 4);
}

#[test]
fn command_of_a_message_logs_in() {
    let server = LoginServer::start();
    let home = Home::new();
    home.write("my files/airlock.toml", FILE_KEY);
    let target = server.config();
    let target = target.split('"').nth(1).unwrap();
    let flags = [
        "--server",
        &format!("w={target}"),
        "--config",
        "my files/airlock.toml",
        "--state-dir",
        "state",
    ];
    let servers = || home.run(["servers"].iter().chain(&flags));
    let refused = servers().expect_code(30);
    let (_, next) = refused.stdout.split_once("next: run `").unwrap();
    let (command, _) = next.split_once('`').unwrap();
    assert!(command.starts_with("airlock login w "), "{command}");
    let mut shell = home.airlock(["login", "--help"]);
    let program = shell.get_program().to_owned();
    let airlock = shell.get_args().next().unwrap().to_owned();
    shell = Command::new("sh");
    home.dress(&mut shell);
    let command = command.replacen("airlock", "exec \"$0\" \"$1\"", 1);
    shell.arg("-c").arg(format!("{command} --no-browser"));
    shell.arg(program).arg(airlock);
    let (code, stdout, stderr) = paste(shell, &server);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    servers().expect_code(0);
}

#[test]
fn credential_in_an_address_is_in_no_message() {
    const KEY: &str = "S3cr3tVal99";
    let server = LoginServer::start();
    let home = Home::new();
    home.write("airlock.toml", FILE_KEY);
    let flag = format!("w={}/mcp?api_key={KEY}", server.issuer());
    let flags = ["--server", &flag, "--config", "airlock.toml"];
    let script = "try { await w.create({title: 't'}) } catch (e) { return e.message }";
    let run = ["run", "-e", script, "--allow", "w.*"];
    let skipping = ["run", "-e", "return 1", "--skip-unreachable"];
    for command in [&["servers"][..], &run, &skipping] {
        let output = home.run(command.iter().chain(&flags));
        let text = output.to_string();
        assert!(text.contains("airlock login w"), "{text}");
        assert!(!text.contains(KEY), "{text}");
    }
}

#[test]
fn wrong_request_to_the_callback_does_not_end_the_login() {
    let server = LoginServer::start();
    let home = configured(&server);
    let args = ["login", "w", "--config", "airlock.toml", "--no-browser"];
    let mut child = home
        .airlock(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut read = lines.map_while(Result::ok);
    let address = read.find(|it| it.contains("/authorize?")).unwrap();
    let right = server.approve(address.trim());
    let (callback, _) = right.split_once('?').unwrap();
    let wrong = format!("{callback}?code=stolen&state=guessed");
    assert!(get(&wrong).starts_with("HTTP/1.1 400 "));
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{wrong}").unwrap();
    let said = read.find(|it| it.contains("not the answer of this login"));
    assert!(said.is_some());
    assert!(get(&right).starts_with("HTTP/1.1 200 "));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    call(&home, 1).wait().expect_code(0);
}

#[test]
fn client_with_a_secret_needs_its_issuer() {
    let server = LoginServer::start();
    let home = Home::new();
    let with = |issuer: &str| {
        let oauth = format!(
            "oauth = {{ client_id = \"c\", client_secret = \"secret-of-the-client\"{issuer} }}\n"
        );
        home.write("airlock.toml", server.config() + &oauth);
        home.run(["login", "w", "--config", "airlock.toml", "--no-browser"])
            .expect_code(30)
    };
    with("").expect_stderr("`client_secret` needs `issuer`");
    with(", issuer = \"https://login.example\"")
        .expect_stderr("the configuration expects `https://login.example`");
    assert!(!server.was_asked_for("/authorize") && !server.was_asked_for("/token"));
}

#[test]
fn client_with_a_private_key_is_checked_before_anything_is_sent() {
    let server = LoginServer::start();
    let home = Home::new();
    let refused = |oauth: &str, why: &str| {
        let oauth = format!("oauth = {{ {oauth} }}\n");
        home.write("airlock.toml", server.config() + &oauth + FILE_KEY);
        call(&home, 1).wait().expect_code(30).expect_stderr(why);
    };
    let issuer = format!("issuer = \"{}\"", server.issuer());
    let key = "private_key = \"no-key\"";
    refused(
        "client_id = \"c\", grant = \"client_credentials\"",
        "needs `client_id`, and `client_secret` or `private_key`",
    );
    refused(key, "`private_key` needs `client_id`");
    refused(
        &format!("client_id = \"c\", {key}"),
        "`private_key` needs `issuer`",
    );
    refused(
        &format!("client_id = \"c\", client_secret = \"a\", {key}, {issuer}"),
        "`client_secret` and `private_key` exclude each other",
    );
    refused(
        &format!("client_id = \"c\", {key}, {issuer}"),
        "invalid `private_key`: it has no PEM block `PRIVATE KEY`",
    );
    assert_eq!(server.requests_for("/mcp"), 0);
}

#[test]
fn failed_renewal_deletes_nothing_and_an_ended_login_is_said() {
    let server = LoginServer::start();
    let home = configured(&server);
    log_in(&home, &server, &[]);
    server.expire_access();
    server.set_down(true);
    call(&home, 1).wait().expect_code(30);
    server.set_down(false);
    call(&home, 1).wait().expect_code(0);
    server.expire_login();
    let ended = call(&home, 1).wait().expect_code(30);
    ended.expect_stderr(&next(&home, "w"));
    let shown = home
        .run(["servers", "--config", "airlock.toml"])
        .expect_code(30);
    shown.expect_stdout("login-required");
    log_in(&home, &server, &[]);
    call(&home, 1).wait().expect_code(0);
}

#[test]
fn missing_scope_is_asked_for_by_the_next_login() {
    let server = LoginServer::start();
    let home = configured(&server);
    log_in(&home, &server, &["--scope", "read"]);
    server.require_scope("write");
    let refused = call(&home, 1).wait().expect_code(20);
    let refused = refused.expect_stderr("airlock login w --scope 'write'");
    refused.expect_stderr("login-required");
    assert!(server.calls().is_empty());
    // Without a terminal, nobody is asked, so no client is registered.
    assert_eq!(server.requests_for("/register"), 1);
    let stdout = log_in(&home, &server, &["--scope", "write"]);
    assert!(stdout.contains("scopes:  read write"), "{stdout}");
    call(&home, 1).wait().expect_code(0);
}

/// Returns the address of a login in a text.
fn login_address(text: &str) -> &str {
    let words = text.split_whitespace();
    let mut addresses = words.filter(|it| it.contains("/authorize?"));
    addresses.next().expect("an address")
}

#[test]
fn person_at_the_terminal_logs_in_during_a_run() {
    let server = LoginServer::start();
    let home = configured(&server);
    log_in(&home, &server, &["--scope", "read"]);
    server.require_scope("write");
    let script = "const made = await Promise.all([1, 2].map(n => w.create({title: `t${n}`}))); \
                  return JSON.stringify(made)";
    let args = [
        "run",
        "-e",
        script,
        "--config",
        "airlock.toml",
        "--allow",
        "w.*",
    ];
    let logs_in = |shown: &str| {
        let page = server.browse(login_address(shown));
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        String::new()
    };
    let (shown, code) = act_at(&home, &args, [("[o]pened", logs_in)]);
    assert_eq!(code, Some(0), "{shown}");
    // One login serves both calls, and each call is made once.
    assert_eq!(shown.matches("/authorize?").count(), 1, "{shown}");
    let mut calls = server.calls();
    calls.sort();
    assert_eq!(calls, ["t1", "t2"]);
    let value = shown.rsplit("made with").next().unwrap();
    assert!(!value.contains("http://"), "{value}");
    let journals = home.journals();
    let journal = std::fs::read_to_string(journals.last().unwrap()).unwrap();
    let login = format!(
        r#""login":{{"issuer":"{}","scopes":["read","write"]}}"#,
        server.issuer()
    );
    assert_eq!(journal.matches(&login).count(), 1, "{journal}");
    assert!(!journal.contains("/authorize"), "{journal}");
    home.verify_all();
    let said = format!(
        "logged in at {} with the scopes read write",
        server.issuer()
    );
    let run = journals.last().unwrap().file_stem().unwrap();
    let history = home.run(["runs".as_ref(), "show".as_ref(), run]);
    history.expect_code(0).expect_stdout(&said);
    check_no_secret(&home, &server, &[]);
}

#[test]
fn declined_login_ends_the_call_and_nothing_is_made() {
    let server = LoginServer::start();
    let home = configured(&server);
    log_in(&home, &server, &["--scope", "read"]);
    server.require_scope("write");
    let script = "try { await w.create({title: 't'}) } catch (e) { return [e.code, e.message] }";
    let args = [
        "run",
        "-e",
        script,
        "--config",
        "airlock.toml",
        "--allow",
        "w.*",
    ];
    let declines = |_: &str| "d\n".to_owned();
    let (shown, code) = act_at(&home, &args, [("[o]pened", declines)]);
    assert_eq!(code, Some(0), "{shown}");
    for part in [
        "login-required",
        "the person did not log in",
        "--scope 'write'",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(server.calls().is_empty());
}

#[test]
fn person_enters_a_code_on_another_device() {
    let server = LoginServer::start();
    let home = configured(&server);
    let args = ["login", "w", "--config", "airlock.toml", "--device"];
    let mut command = home.airlock(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let prompt = lines.find(|it| it.contains("enter the code")).unwrap();
    assert!(prompt.contains("ABCD-EFGH"), "{prompt}");
    let address = lines.next().unwrap();
    // The first question comes before the person has entered the code.
    wait_until(|| server.was_asked_for("/token"));
    let _ = get(address.trim());
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("renewed without a person"), "{stdout}");
    assert!(!server.was_asked_for("/authorize"));
    call(&home, 1).wait().expect_code(0);
    check_no_secret(&home, &server, &[]);
}

#[test]
fn logout_revokes_and_deletes() {
    let server = LoginServer::start();
    let home = configured(&server);
    log_in(&home, &server, &[]);
    let logout = ["logout", "w", "--config", "airlock.toml"];
    home.run(logout)
        .expect_code(0)
        .expect_stdout("its tokens are revoked");
    assert_eq!(server.revoked(), 2);
    home.run(logout)
        .expect_code(0)
        .expect_stdout("there is no login to `w`");
    call(&home, 1).wait().expect_code(30);
}

#[test]
fn keyring_that_hangs_is_an_error_that_names_the_file() {
    let server = LoginServer::start();
    let home = Home::new();
    home.write("airlock.toml", server.config());
    let args = ["login", "w", "--config", "airlock.toml", "--no-browser"];
    let mut command = with_tool(&home, "#!/bin/sh\nexec sleep 60\n", args);
    let since = Instant::now();
    let refused = start(&mut command, "").wait().expect_code(30);
    assert!(since.elapsed() < Duration::from_secs(30));
    let refused = refused.expect_stderr("did not answer within 3 s");
    let refused = refused.expect_stderr("`keys = \"file\"`");
    // The person does not log in for nothing.
    assert!(!refused.stderr.contains("/authorize"), "{refused}");
    assert!(!server.was_asked_for("/register"));
}

/// A keyring of files.
const RING: &str = "#!/bin/sh\ncd \"$HOME\"; verb=$1; shift; [ $verb = store ] && shift\n\
     file=ring-$2-$4\ncase $verb in store) cat > $file;; *) cat $file 2>/dev/null;; esac\n";

#[test]
fn keyring_holds_the_key_and_nothing_else() {
    let server = LoginServer::start();
    let home = Home::new();
    home.write("airlock.toml", server.config());
    let args = ["login", "w", "--config", "airlock.toml", "--no-browser"];
    let (code, stdout, stderr) = paste(with_tool(&home, RING, args), &server);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("key:     keyring"), "{stdout}");
    assert!(!home.path().join(".local/state/airlock/logins/key").exists());
    let servers = ["servers", "--config", "airlock.toml"];
    let shown = start(&mut with_tool(&home, RING, servers), "").wait();
    shown.expect_code(0).expect_stdout("key: keyring");
    check_no_secret(&home, &server, &[]);
    // The place of the key is not changed silently.
    let shown = home.run(servers).expect_code(30);
    shown.expect_stdout("login: cannot be read: this machine has no keyring");
}

#[test]
fn keyring_gives_values_to_headers() {
    let server = LoginServer::start();
    let home = Home::new();
    home.write("ring-s-a", "value-from-the-ring");
    let header = |entry: &str| {
        let header = format!("headers = {{ Authorization = \"Bearer ${{keyring:{entry}}}\" }}\n");
        home.write("airlock.toml", server.config() + &header);
        let args = ["servers", "--config", "airlock.toml"];
        start(&mut with_tool(&home, RING, args), "").wait()
    };
    let refused = header("s/a").expect_code(30);
    refused.expect_stdout("refused the credentials");
    let missing = header("s/b").expect_code(30);
    missing.expect_stderr("the keyring has no entry `s/b`");
}
