//! The login of one server: the token for each request, its renewal, and a new login.

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use airlock_core::id::ServerName;
use airlock_core::login::{
    Answer, Challenge, Credential, DevicePrompt, Event, Grant, Login, LoginError, LoginInput,
    Network, Randomness, Request, ScopeSet, Step, network_of_host, refresh_request, refreshed,
    revocation_requests,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::authorization_client::{SendError, network_of, send};
use super::keys::KeyPlace;
use super::renewals::{self, UnderWay};
use super::settings::LoginSettings;
use super::store::{LoginId, LoginStore, LoginVersion, StoredLogin};
use super::store_error::StoreError;
use super::wall_clock::now_ms;
use crate::secret::Secret;
use crate::secrets::Secrets;
use crate::server_url::ServerUrl;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ServerLogin(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: ServerName,
    url: ServerUrl,
    settings: LoginSettings,
    client_metadata: Option<String>,
    store: LoginStore,
    id: LoginId,
    /// The flags with which `airlock login` finds this server.
    flags: String,
    /// The caller of `airlock serve` whose own login this is.
    caller: Option<String>,
    /// Held while the login is renewed, so that one process renews it once.
    renewal: Arc<Mutex<()>>,
    /// Held while a person is asked to log in during a run. Contains when a person was last asked in
    /// vain, and who.
    asking: Mutex<Option<(Instant, Person)>>,
}

/// Who is asked to log in during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Person {
    /// The person at this host.
    Host(Arc<str>),
    /// The person who watches the run with this number.
    Run(u64),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginFailure {
    #[error(transparent)]
    Flow(#[from] LoginError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0} has no https address, so its login could be read on the network")]
    PlainHttp(String),
    #[error("{0}")]
    Other(String),
}

/// Minimum length of a code that is masked.
const CODE_BYTES_MIN: usize = 16;

impl LoginFailure {
    /// Returns advice for the person.
    pub(crate) fn next(&self) -> &'static str {
        match self {
            Self::Flow(error) => error.next(),
            Self::Send(_) => "check the address and the network; nothing was deleted",
            Self::Store(error) => error.next(),
            Self::PlainHttp(_) => "use the https address of the server",
            Self::Other(_) => "log in again",
        }
    }

    /// Whether a new login helps. It does not help if a server cannot be used for a login at all.
    pub(crate) fn needs_login(&self) -> bool {
        matches!(
            self,
            Self::Flow(LoginError::GrantInvalid(_) | LoginError::TokenRefused { .. })
        )
    }

    fn is_transient(&self) -> bool {
        match self {
            Self::Flow(error) => error.is_transient(),
            Self::Send(_) => true,
            Self::Store(_) | Self::PlainHttp(_) | Self::Other(_) => false,
        }
    }
}

/// How the person answers.
#[derive(Clone, Copy)]
enum Answering<'a> {
    /// The browser is redirected to this address.
    Redirect(&'a str),
    Device,
    /// The client logs in with its own secret.
    Nobody,
}

/// A login with a person: it waits for the address at which the browser ends.
#[derive(Debug)]
pub(crate) struct PersonalLogin {
    login: Login,
    network: Network,
    /// What the person opens.
    pub(crate) address: String,
}

impl PersonalLogin {
    /// Whether the login waits for this address.
    pub(crate) fn is_answer(&self, address: &str) -> bool {
        self.login.is_answer(address)
    }
}

/// A login with a person who enters a code on a page of the authorization server.
#[derive(Debug)]
pub(crate) struct DeviceLogin {
    login: Login,
    network: Network,
    pub(crate) prompt: DevicePrompt,
    pause_ms: u64,
}

/// A step that needs no person was done, and this is next.
enum Progress {
    Address(String),
    Wait(DevicePrompt, u64),
    Done(Box<Credential>),
}

impl ServerLogin {
    pub(crate) fn new(
        name: ServerName,
        url: ServerUrl,
        settings: LoginSettings,
        client_metadata: Option<String>,
        store: LoginStore,
        flags: String,
    ) -> Self {
        let client = settings.client.as_ref();
        if let Some(secret) = client.and_then(|it| it.secret.as_deref()) {
            Secrets::learn([secret]);
        }
        let id = LoginId::new(&name.0, url.url().as_str(), &settings);
        Self(Arc::new(Inner {
            name,
            url,
            settings,
            client_metadata,
            store,
            id,
            flags,
            caller: None,
            renewal: Arc::default(),
            asking: Mutex::default(),
        }))
    }

    /// Returns the login of one caller of `airlock serve` to the same server. It shares nothing with
    /// the logins of other callers.
    pub(crate) fn of_caller(&self, caller: &str) -> Self {
        let shared = &self.0;
        Self(Arc::new(Inner {
            name: shared.name.clone(),
            url: shared.url.clone(),
            settings: shared.settings.clone(),
            client_metadata: shared.client_metadata.clone(),
            store: shared.store.clone(),
            id: shared.id.of_caller(caller),
            flags: String::new(),
            caller: Some(caller.to_owned()),
            renewal: Arc::default(),
            asking: Mutex::default(),
        }))
    }

    pub(crate) fn caller(&self) -> Option<&str> {
        self.0.caller.as_deref()
    }

    pub(crate) fn settings(&self) -> &LoginSettings {
        &self.0.settings
    }

    /// Returns the command that logs in to the server, with the scopes that are missing, and without
    /// the flags, because scripts see it. The server chooses the scopes, and people paste the command
    /// into a shell: scopes that could end the quoted text are left out. `None`: no command makes the
    /// login of a caller.
    pub(crate) fn command(&self, challenge: &Challenge) -> Option<String> {
        let name = &self.0.name.0;
        let scopes = challenge.scopes.to_string();
        let are_named = challenge.is_insufficient_scope() && !scopes.is_empty();
        if self.0.caller.is_some() {
            return None;
        }
        Some(match are_named && !scopes.contains('\'') {
            true => format!("airlock login {name} --scope '{scopes}'"),
            false => format!("airlock login {name}"),
        })
    }

    /// Returns the flags that complete the command for the person at the terminal, with a space
    /// before each.
    pub(crate) fn flags(&self) -> &str {
        &self.0.flags
    }

    /// Whether only a person can log in.
    pub(crate) fn needs_person(&self) -> bool {
        self.0.settings.grant == Grant::AuthorizationCode
    }

    /// Returns the lock that is held while a person is asked to log in during a run, with the time
    /// at which a person was last asked in vain.
    pub(crate) fn asking(&self) -> &Mutex<Option<(Instant, Person)>> {
        &self.0.asking
    }

    /// Returns the version of the stored login, which changes with each login of a person, and stays
    /// the same when it is renewed.
    pub(crate) fn version(&self) -> Option<LoginVersion> {
        self.0.store.version(&self.0.id)
    }

    /// Whether there is a login, or the server has its own client. A login that cannot be read
    /// counts.
    pub(crate) fn is_used(&self) -> bool {
        self.0.settings.client.is_some() || !matches!(self.stored(), Ok(None))
    }

    /// Returns the stored login, without renewing it.
    pub(crate) fn stored(&self) -> Result<Option<StoredLogin>, StoreError> {
        let stored = self.0.store.load(&self.0.id)?;
        if let Some(stored) = &stored {
            Secrets::learn(stored.credential.secrets());
        }
        Ok(stored)
    }

    /// Returns the token for the next request, renewed if it would end soon. `None`: the server
    /// gets no token, because there is no login.
    pub(crate) async fn token(&self) -> Result<Option<Secret>, LoginFailure> {
        let login = self.clone();
        let stored = blocking(move || login.stored()).await??;
        if stored.is_some() || self.0.settings.grant == Grant::ClientCredentials {
            self.check_is_private()?;
        }
        match stored {
            Some(stored) if !stored.credential.needs_renewal(now_ms()) => {
                Ok(Some(Secret::new(stored.credential.access_token)))
            }
            Some(stored) => {
                let used = Some(stored.credential.access_token);
                self.renewed(used, false).await
            }
            None if self.0.settings.grant == Grant::ClientCredentials => {
                self.renewed(None, false).await
            }
            None => Ok(None),
        }
    }

    /// Returns the token to use after the server refused `used`: one that another process stored, or a
    /// renewed one. `None` if the login has no other token.
    pub(crate) async fn token_after_refusal(
        &self,
        used: &Secret,
    ) -> Result<Option<Secret>, LoginFailure> {
        self.renewed(Some(used.expose().to_owned()), true).await
    }

    /// Refuses to send a token to a server that is reached over plain http.
    fn check_is_private(&self) -> Result<(), LoginFailure> {
        let url = self.0.url.url();
        let network = url.host().and_then(|host| network_of_host(&host));
        match url.scheme() == "https" || network == Some(Network::Loopback) {
            true => Ok(()),
            false => Err(LoginFailure::PlainHttp(self.0.url.to_string())),
        }
    }

    /// Renews the login, unless another task or process has replaced the token `used` already.
    /// A refused token counts as useless, whatever its end says. `None` without a login, or if the
    /// refused token cannot be replaced.
    async fn renewed(
        &self,
        used: Option<String>,
        is_refused: bool,
    ) -> Result<Option<Secret>, LoginFailure> {
        let one = Arc::clone(&self.0.renewal).lock_owned().await;
        let login = self.clone();
        let renewal = async move {
            let _one = one;
            login.renew_once(used, is_refused).await
        };
        let ended = renewals::run_to_end(renewal).await;
        ended.map_err(other)?
    }

    async fn renew_once(
        &self,
        used: Option<String>,
        is_refused: bool,
    ) -> Result<Option<Secret>, LoginFailure> {
        let is_used = |credential: &Credential| used.as_ref() == Some(&credential.access_token);
        let is_current =
            |credential: &Credential| !is_used(credential) && !credential.needs_renewal(now_ms());
        // Most tasks that waited find a new token, and need no lock.
        if let Some(stored) = self.stored()?
            && is_current(&stored.credential)
        {
            return Ok(Some(Secret::new(stored.credential.access_token)));
        }
        let login = self.clone();
        let (lock, stored) = blocking(move || {
            let lock = login.0.store.lock(&login.0.id)?;
            Ok::<_, StoreError>((lock, login.stored()?))
        })
        .await??;
        let without_person = self.0.settings.grant == Grant::ClientCredentials;
        let Some(stored) = stored else {
            return match without_person {
                true => self.log_in_without_person(&lock).await,
                false => Ok(None),
            };
        };
        let current = &stored.credential;
        if is_current(current) {
            return Ok(Some(Secret::new(current.access_token.as_str())));
        }
        let usable = |credential: &Credential| {
            let is_useless = is_refused && is_used(credential);
            let is_usable = !is_useless && !credential.is_expired(now_ms());
            is_usable.then(|| Secret::new(credential.access_token.as_str()))
        };
        // Resolved first, because the end of the process waits only for the request.
        let network = network_of(self.0.url.url()).await;
        let Some(under_way) = UnderWay::begin() else {
            return Err(LoginFailure::Other("airlock is ending".to_owned()));
        };
        let renewed = match self.renew(current, network).await {
            Ok(Some(renewed)) => renewed,
            // The authorization server may have moved, or the configured secret may be new.
            Err(LoginFailure::Flow(error)) if without_person && !error.is_transient() => {
                return self.log_in_without_person(&lock).await;
            }
            Ok(None) => {
                let why = "the token has ended, and there is no refresh token".to_owned();
                return ended(usable(current), is_refused, why);
            }
            // Nothing is deleted: the same renewal may succeed later.
            Err(error) if error.is_transient() => return usable(current).map(Some).ok_or(error),
            Err(LoginFailure::Flow(LoginError::GrantInvalid(why))) => {
                // Another program may have renewed it without the lock.
                let again = self.stored()?.map(|it| it.credential);
                let again = again.filter(|again| again.refresh_token != current.refresh_token);
                let token = again.as_ref().and_then(usable).or_else(|| usable(current));
                return ended(token, is_refused, why);
            }
            Err(error) => return usable(current).map(Some).ok_or(error),
        };
        Secrets::learn(renewed.secrets());
        let token = Secret::new(renewed.access_token.as_str());
        let login = self.clone();
        blocking(move || {
            let replaced = login.0.store.replace(&login.0.id, &renewed, &stored);
            drop((under_way, lock));
            replaced
        })
        .await??;
        Ok(Some(token))
    }

    async fn renew(
        &self,
        credential: &Credential,
        network: Network,
    ) -> Result<Option<Credential>, LoginFailure> {
        let credential = &self.with_configured_client(credential);
        let Some(request) = refresh_request(credential) else {
            return Ok(None);
        };
        let (status, body) = self.send(&request, network).await?;
        let answer = Answer {
            status,
            body: &body,
        };
        Ok(Some(refreshed(credential, &answer, now_ms())?))
    }

    /// Returns the credential with the secret or the key of the configuration, which may be newer
    /// than the one at the last login.
    fn with_configured_client(&self, credential: &Credential) -> Credential {
        let mut credential = credential.clone();
        if let Some(configured) = &self.0.settings.client {
            credential.client.configure(configured);
        }
        credential
    }

    /// Logs in with the client's own secret.
    async fn log_in_without_person(&self, lock: &File) -> Result<Option<Secret>, LoginFailure> {
        let challenge = Challenge::default();
        let (_, progress) = self.start(challenge, None, Answering::Nobody).await?;
        match progress {
            Progress::Done(credential) => {
                let token = Secret::new(credential.access_token.as_str());
                self.keep_locked(*credential, lock.try_clone().map_err(other)?)
                    .await?;
                Ok(Some(token))
            }
            Progress::Address(_) | Progress::Wait(..) => Err(LoginError::OutOfOrder.into()),
        }
    }

    /// Begins a login of a person who enters a code on a page, on any device.
    pub(crate) async fn begin_device(
        &self,
        challenge: Challenge,
    ) -> Result<DeviceLogin, LoginFailure> {
        let started = self.start(challenge, None, Answering::Device);
        let ((login, network), progress) = started.await?;
        let Progress::Wait(prompt, pause_ms) = progress else {
            return Err(LoginError::OutOfOrder.into());
        };
        Secrets::learn([&prompt.device_code]);
        Ok(DeviceLogin {
            login,
            network,
            prompt,
            pause_ms,
        })
    }

    /// Waits until the person has entered the code.
    pub(crate) async fn finish_device(
        &self,
        mut device: DeviceLogin,
    ) -> Result<(Credential, KeyPlace), LoginFailure> {
        loop {
            tokio::time::sleep(Duration::from_millis(device.pause_ms)).await;
            let now_ms = now_ms();
            let step = device.login.step(Event::Waited { now_ms })?;
            let advanced = self.advance(&mut device.login, step, device.network);
            match advanced.await? {
                Progress::Wait(_, pause_ms) => device.pause_ms = pause_ms,
                Progress::Done(credential) => {
                    let lock = self.lock().await?;
                    let place = self.keep_locked((*credential).clone(), lock).await?;
                    return Ok((*credential, place));
                }
                Progress::Address(_) => return Err(LoginError::OutOfOrder.into()),
            }
        }
    }

    /// Begins a login. A login of a client with its own secret ends at once, and returns where its
    /// key is stored.
    pub(crate) async fn begin(
        &self,
        challenge: Challenge,
        scopes: Option<ScopeSet>,
        redirect_uri: &str,
    ) -> Result<Result<PersonalLogin, (Credential, KeyPlace)>, LoginFailure> {
        let answering = Answering::Redirect(redirect_uri);
        let started = self.start(challenge, scopes, answering);
        let ((login, network), progress) = started.await?;
        match progress {
            Progress::Wait(..) => Err(LoginError::OutOfOrder.into()),
            Progress::Address(address) => Ok(Ok(PersonalLogin {
                login,
                network,
                address,
            })),
            Progress::Done(credential) => {
                let lock = self.lock().await?;
                let place = self.keep_locked((*credential).clone(), lock).await?;
                Ok(Err((*credential, place)))
            }
        }
    }

    /// Ends a login with the address at which the browser ended. The person has then done their part,
    /// so the login is stored even if the caller no longer waits for it.
    pub(crate) async fn finish(
        &self,
        personal: PersonalLogin,
        address: String,
    ) -> Result<(Credential, KeyPlace), LoginFailure> {
        let login = self.clone();
        let finishing = async move {
            // Locked first, because the end of the process waits only for the request.
            let lock = login.lock().await?;
            let Some(_under_way) = UnderWay::begin() else {
                return Err(LoginFailure::Other("airlock is ending".to_owned()));
            };
            login.finish_once(personal, &address, lock).await
        };
        let ended = renewals::run_to_end(finishing).await;
        ended.map_err(other)?
    }

    async fn finish_once(
        &self,
        mut personal: PersonalLogin,
        address: &str,
        lock: File,
    ) -> Result<(Credential, KeyPlace), LoginFailure> {
        let step = personal.login.step(Event::Returned(address))?;
        // Only now the code is known to be of this login. A short one would mask other texts.
        if let Ok(url) = reqwest::Url::parse(address.trim()) {
            let is_code = |(name, code): &(Cow<'_, str>, Cow<'_, str>)| {
                name == "code" && code.len() >= CODE_BYTES_MIN
            };
            let codes = url.query_pairs().filter(is_code);
            Secrets::learn(codes.map(|(_, code)| code.into_owned()));
        }
        match self
            .advance(&mut personal.login, step, personal.network)
            .await?
        {
            Progress::Done(credential) => {
                let place = self.keep_locked((*credential).clone(), lock).await?;
                Ok((*credential, place))
            }
            Progress::Address(_) | Progress::Wait(..) => Err(LoginError::OutOfOrder.into()),
        }
    }

    async fn start(
        &self,
        challenge: Challenge,
        scopes: Option<ScopeSet>,
        answering: Answering<'_>,
    ) -> Result<((Login, Network), Progress), LoginFailure> {
        self.check_is_private()?;
        let login = self.clone();
        // A key that cannot be used is found before a person logs in for nothing.
        let earlier = blocking(move || {
            login.0.store.check_key()?;
            Ok::<_, StoreError>(login.stored().ok().flatten())
        })
        .await??;
        let network = network_of(self.0.url.url()).await;
        let randomness = randomness()?;
        // The state is part of the address that the person opens, so it is no secret.
        Secrets::learn([&randomness.verifier]);
        let settings = &self.0.settings;
        let mut login = Login::new(LoginInput {
            server: self.0.url.url().clone(),
            network,
            challenge,
            earlier_scopes: earlier.map(|it| it.credential.scopes).unwrap_or_default(),
            scopes: scopes.or_else(|| settings.scopes.clone()),
            client: settings.client.clone(),
            issuer: settings.issuer.clone(),
            client_metadata: self.0.client_metadata.clone(),
            grant: settings.grant,
            is_device: matches!(answering, Answering::Device),
            redirect_uri: match answering {
                Answering::Redirect(uri) => uri.to_owned(),
                Answering::Device | Answering::Nobody => String::new(),
            },
            randomness,
        })?;
        let step = login.step(Event::Started)?;
        let progress = self.advance(&mut login, step, network).await?;
        Ok(((login, network), progress))
    }

    /// Sends requests until a person is needed, or the login ends.
    async fn advance(
        &self,
        login: &mut Login,
        mut step: Step,
        network: Network,
    ) -> Result<Progress, LoginFailure> {
        loop {
            let request = match step {
                Step::Send(request) => request,
                Step::Authorize(address) => return Ok(Progress::Address(address.into())),
                Step::Wait { prompt, pause_ms } => return Ok(Progress::Wait(prompt, pause_ms)),
                Step::Done(credential) => return Ok(Progress::Done(credential)),
            };
            let (status, body) = self.send(&request, network).await?;
            let answer = Answer {
                status,
                body: &body,
            };
            let now_ms = now_ms();
            step = login.step(Event::Answered { answer, now_ms })?;
        }
    }

    async fn send(&self, request: &Request, network: Network) -> Result<(u16, Vec<u8>), SendError> {
        send(request, network, self.0.settings.key.as_ref()).await
    }

    async fn lock(&self) -> Result<File, LoginFailure> {
        let login = self.clone();
        Ok(blocking(move || login.0.store.lock(&login.0.id)).await??)
    }

    async fn keep_locked(
        &self,
        credential: Credential,
        lock: File,
    ) -> Result<KeyPlace, LoginFailure> {
        Secrets::learn(credential.secrets());
        let login = self.clone();
        let stored = blocking(move || {
            let stored = login.0.store.store_new(&login.0.id, &credential);
            drop(lock);
            stored
        });
        Ok(stored.await??)
    }

    /// Deletes the stored login, and revokes its tokens where the server offers that. Returns
    /// `None` if there was no login, and otherwise whether everything was revoked.
    pub(crate) async fn log_out(&self) -> Result<Option<bool>, LoginFailure> {
        let login = self.clone();
        // A login whose key is lost can still be deleted.
        let (stored, was_there) = blocking(move || {
            let _lock = login.0.store.lock(&login.0.id)?;
            let stored = login.stored().ok().flatten();
            Ok::<_, StoreError>((stored, login.0.store.delete(&login.0.id)?))
        })
        .await??;
        if !was_there {
            return Ok(None);
        }
        let requests =
            stored.map(|it| revocation_requests(&self.with_configured_client(&it.credential)));
        let requests = requests.unwrap_or_default();
        let network = network_of(self.0.url.url()).await;
        let mut is_revoked = !requests.is_empty();
        for request in &requests {
            let sent = self.send(request, network).await;
            is_revoked &= matches!(sent, Ok((200..=299, _)));
        }
        Ok(Some(is_revoked))
    }
}

/// Returns the token, or that a new login is needed. After a refusal, the answer of the server says
/// that.
fn ended(
    token: Option<Secret>,
    is_refused: bool,
    why: String,
) -> Result<Option<Secret>, LoginFailure> {
    match token {
        None if !is_refused => Err(LoginError::GrantInvalid(why).into()),
        token => Ok(token),
    }
}

fn randomness() -> Result<Randomness, LoginFailure> {
    let text = || {
        let mut bytes = [0; 32];
        let filled = getrandom::fill(&mut bytes);
        filled.map_err(other)?;
        Ok::<_, LoginFailure>(URL_SAFE_NO_PAD.encode(bytes))
    };
    let verifier = text()?;
    Ok(Randomness {
        state: text()?,
        challenge: URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())),
        verifier,
    })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoginFailure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(other)
}

fn other(error: impl std::fmt::Display) -> LoginFailure {
    LoginFailure::Other(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_is_offered_only_where_it_helps() {
        let needs = |error: LoginError| LoginFailure::from(error).needs_login();
        assert!(needs(LoginError::GrantInvalid(String::new())));
        assert!(needs(LoginError::TokenRefused {
            what: "renewal",
            why: "invalid_client".to_owned()
        }));
        for error in [
            LoginError::NoPkce,
            LoginError::NoResourceMetadata,
            LoginError::ServerMetadata(String::new()),
            LoginError::NoServerMetadata {
                issuer: String::new(),
            },
            LoginError::IssuerMismatch {
                named: String::new(),
                expected: String::new(),
            },
            LoginError::Unavailable { status: 503 },
        ] {
            assert!(!needs(error.clone()), "{error}");
        }
        assert!(!LoginFailure::Other(String::new()).needs_login());
    }
}
