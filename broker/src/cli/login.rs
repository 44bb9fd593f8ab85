//! `airlock login` and `airlock logout`: log in to a server with OAuth, and delete the login.

use std::time::Duration;

use airlock_core::login::{Challenge, Credential, ScopeSet, metadata_document};
use airlock_core::problem::Problem;
use clap::Args;
use tokio::sync::mpsc;

use super::options::{ServerOptions, StateOptions, usage};
use super::screen::Screen;
use super::servers::unknown_server;
use super::{Outcome, exit, print, print_json, runtime};
use crate::config::{BrowserCommand, Config, Environment, ServerConfig};
use crate::login::{
    CallbackListener, DEFAULT_CALLBACK_PATH, KeyPlace, LoginFailure, PersonalLogin, ServerLogin,
    now_ms,
};
use crate::render::{escape, login_expiry};
use crate::upstream::{BadUrl, ServerUrl, challenge_of};

/// Maximum time for the person to log in.
const PERSON_WALL: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Args)]
pub(super) struct LoginOptions {
    /// The server to log in to
    #[arg(
        value_name = "SERVER",
        required_unless_present = "print_client_metadata"
    )]
    name: Option<String>,
    /// Print the address, and do not open a browser
    #[arg(long, conflicts_with = "browser")]
    no_browser: bool,
    /// Program that opens the address, which is its only argument [default: BROWSER, or the
    /// desktop's]
    #[arg(long, value_name = "PROGRAM")]
    browser: Option<String>,
    /// Log in with a code that the person enters on a page, on any device
    #[arg(long, conflicts_with_all = ["browser", "no_browser"])]
    device: bool,
    /// Ask for these scopes, in addition to those of the earlier login
    #[arg(long, value_name = "SCOPES")]
    scope: Option<String>,
    /// Print the client metadata document for an organisation to host at this address
    #[arg(long, value_name = "URL", exclusive = true)]
    print_client_metadata: Option<String>,
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    #[command(flatten)]
    state: StateOptions,
}

#[derive(Debug, Args)]
pub(super) struct LogoutOptions {
    /// The server to log out from
    #[arg(value_name = "SERVER")]
    name: String,
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    #[command(flatten)]
    state: StateOptions,
}

pub(super) fn login(options: LoginOptions, environment: &Environment) -> Outcome {
    if let Some(address) = &options.print_client_metadata {
        return print_client_metadata(address);
    }
    let screen = Screen::of_process(environment, false);
    let name = options.name.unwrap_or_default();
    let (config, server) = load(&name, options.servers, options.state, environment, &screen)?;
    let login = login_of(&server)?;
    let browser = match (options.no_browser, options.browser) {
        (true, _) => None,
        (false, Some(program)) => Some(BrowserCommand::of(program, environment)),
        (false, None) => config.browser,
    };
    let scopes = options.scope.as_deref().map(ScopeSet::parse);
    runtime()?.block_on(async {
        let mut challenge = challenge_of(&server.spec).await.map_err(|error| {
            let what = format!("cannot log in to `{name}`");
            Problem::new("server-unavailable", what, error.to_string(), error.next())
        })?;
        if let Some(scopes) = scopes {
            // The scopes are added to those of the earlier login, as if the server demanded them.
            challenge.scopes = scopes;
            challenge.error = Some("insufficient_scope".to_owned());
        }
        let logged_in = match options.device {
            true => with_device(&login, challenge, &screen).await,
            false => with_person(&login, challenge, browser.as_ref(), &screen).await,
        };
        let (credential, place) = logged_in.map_err(|error| failed(&name, &error))?;
        print(&described(&name, &credential, place))?;
        Ok(exit::DONE)
    })
}

pub(super) fn logout(options: LogoutOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    let name = options.name;
    let (_, server) = load(&name, options.servers, options.state, environment, &screen)?;
    let login = login_of(&server)?;
    let outcome = runtime()?.block_on(login.log_out());
    print(&match outcome.map_err(|error| failed(&name, &error))? {
        None => format!("there is no login to `{name}`\n"),
        Some(true) => format!("logged out from `{name}`; its tokens are revoked\n"),
        Some(false) => format!(
            "logged out from `{name}`; the server did not revoke the tokens, which stay valid until they expire\n"
        ),
    })?;
    Ok(exit::DONE)
}

fn print_client_metadata(address: &str) -> Outcome {
    let url = ServerUrl::parse(address);
    let url = url.and_then(|url| match url.url().scheme() == "https" {
        true => Ok(url),
        false => Err(BadUrl::Scheme(url.url().scheme().to_owned())),
    });
    let url = url.map_err(|bad| {
        let what = "invalid value for `--print-client-metadata`";
        usage(what, bad.to_string(), "write an https address")
    })?;
    print_json(&metadata_document(url.url().as_str()))?;
    Ok(exit::DONE)
}

fn load(
    name: &str,
    servers: ServerOptions,
    state: StateOptions,
    environment: &Environment,
    screen: &Screen,
) -> Result<(Config, ServerConfig), Problem> {
    let mut flags = servers.into_flags()?;
    flags.settings.state = state;
    let config = Config::load(flags, environment)?;
    config.warnings.iter().for_each(|it| screen.warning(it));
    let known: Vec<&str> = config.servers.iter().map(|it| &*it.spec.name.0).collect();
    let server = config.servers.iter().find(|it| *it.spec.name.0 == *name);
    let server = server.ok_or_else(|| unknown_server(name, &known))?.clone();
    Ok((config, server))
}

fn login_of(server: &ServerConfig) -> Result<ServerLogin, Problem> {
    let name = &server.spec.name.0;
    server.spec.login.clone().ok_or_else(|| {
        usage(
            format!("there is no login for the server `{name}`"),
            "logins need a server with an address and without a header `Authorization`",
            "configure `url` for the server, and remove the header",
        )
    })
}

fn failed(name: &str, error: &LoginFailure) -> Problem {
    let what = format!("cannot log in to `{name}`");
    let why = escape::line(&error.to_string()).into_owned();
    Problem::new("server-unavailable", what, why, error.next())
}

async fn with_device(
    login: &ServerLogin,
    challenge: Challenge,
    screen: &Screen,
) -> Result<(Credential, KeyPlace), LoginFailure> {
    let device = login.begin_device(challenge).await?;
    let prompt = &device.prompt;
    screen.show(&format!(
        "open this address on any device, and enter the code {}:\n  {}\n",
        escape::line(&prompt.user_code),
        escape::line(prompt.address.as_str())
    ));
    login.finish_device(device).await
}

async fn with_person(
    login: &ServerLogin,
    challenge: Challenge,
    browser: Option<&BrowserCommand>,
    screen: &Screen,
) -> Result<(Credential, KeyPlace), LoginFailure> {
    let callback = login.settings().callback.as_deref();
    let listener = CallbackListener::bind(callback, DEFAULT_CALLBACK_PATH).await;
    let redirect_uri = match (&listener, callback) {
        (Ok(listener), _) => listener.redirect_uri().to_owned(),
        // The person can still paste the address.
        (Err(_), Some(callback)) => callback.to_owned(),
        (Err(why), None) => return Err(LoginFailure::Other(format!("cannot listen: {why}"))),
    };
    let personal = match login.begin(challenge, None, &redirect_uri).await? {
        Ok(personal) => personal,
        Err(done) => return Ok(done),
    };
    screen.show(&format!(
        "open this address in a browser, on this or another machine:\n  {}\n",
        escape::line(&personal.address)
    ));
    if let Some(browser) = browser
        && let Err(error) = browser.open(personal.address.as_ref())
    {
        screen.show(&format!("the browser cannot be started: {error}\n"));
    }
    let waits_for = match &listener {
        Ok(_) => format!("waiting for {redirect_uri}, or paste"),
        Err(why) => format!("cannot listen at {redirect_uri} ({why}); paste"),
    };
    screen.show(&format!(
        "{waits_for} the address at which the browser ended:\n"
    ));
    let listener = listener.ok();
    let waiting = answered(login, personal, listener.as_ref(), screen);
    match tokio::time::timeout(PERSON_WALL, waiting).await {
        Ok(done) => done,
        Err(_) => Err(LoginFailure::Other(format!(
            "no login within {} minutes",
            PERSON_WALL.as_secs() / 60
        ))),
    }
}

/// Waits for the browser or for a pasted address, whichever comes first.
async fn answered(
    login: &ServerLogin,
    personal: PersonalLogin,
    listener: Option<&CallbackListener>,
    screen: &Screen,
) -> Result<(Credential, KeyPlace), LoginFailure> {
    let address = answer(&personal, listener, screen).await;
    let address = address.map_err(|error| LoginFailure::Other(error.to_string()))?;
    login.finish(personal, address).await
}

async fn answer(
    personal: &PersonalLogin,
    listener: Option<&CallbackListener>,
    screen: &Screen,
) -> std::io::Result<String> {
    let mut pasted = pasted_lines();
    let redirected = async {
        match listener {
            Some(listener) => listener.redirected(|it| personal.is_answer(it)).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(redirected);
    loop {
        tokio::select! {
            address = &mut redirected => return address,
            Some(line) = pasted.recv() => match line.contains("://") {
                true if personal.is_answer(&line) => return Ok(line),
                true => screen.show("this address is not the answer of this login; paste another:\n"),
                false => screen.show("this is not an address; paste the whole address:\n"),
            },
        }
    }
}

/// Reads lines from stdin. At its end, only the browser can answer.
fn pasted_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    // A thread of its own: reading stdin cannot be cancelled, and must not delay the end.
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { break };
            if !line.trim().is_empty() && sender.blocking_send(line.trim().to_owned()).is_err() {
                break;
            }
        }
    });
    receiver
}

fn described(name: &str, credential: &Credential, place: KeyPlace) -> String {
    let scopes = match credential.scopes.is_empty() {
        true => "none named".to_owned(),
        false => credential.scopes.to_string(),
    };
    format!(
        "logged in to `{name}`\n  issuer:  {}\n  scopes:  {scopes}\n  expires: {}\n  key:     {}\n",
        escape::line(&credential.issuer),
        login_expiry(credential, now_ms()),
        place.as_str()
    )
}
