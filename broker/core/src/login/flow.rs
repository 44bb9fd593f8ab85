//! One login as a state machine. The shell performs each [`Step`] and reports an [`Event`].

use std::fmt;

use url::Url;

use super::address::{Network, checked};
use super::challenge::Challenge;
use super::client::{Client, ClientChoice, ConfiguredClient, Grant, Registration};
use super::credential::Credential;
use super::device::{Device, DevicePrompt};
use super::error::{LoginError, shown};
use super::metadata::{ResourceMetadata, ServerMetadata, resource_places, server_places};
use super::redirect::{self, Expected};
use super::request::{Answer, Request};
use super::scopes::ScopeSet;
use super::token::TokenAnswer;
use super::{DEVICE_GRANT, REQUESTS_MAX};

/// The random texts of one login.
#[derive(Clone)]
pub struct Randomness {
    pub state: String,
    /// The PKCE verifier.
    pub verifier: String,
    /// The SHA-256 digest of the verifier, as base64url text.
    pub challenge: String,
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Randomness")
    }
}

#[derive(Debug, Clone)]
pub struct LoginInput {
    pub server: Url,
    /// The network in which the server was found.
    pub network: Network,
    pub challenge: Challenge,
    /// The scopes of an earlier login, which a step-up keeps.
    pub earlier_scopes: ScopeSet,
    /// The scopes that the person or the configuration wants.
    pub scopes: Option<ScopeSet>,
    pub client: Option<ConfiguredClient>,
    /// The only authorization server that may be used.
    pub issuer: Option<String>,
    /// The address of the client metadata document.
    pub client_metadata: Option<String>,
    pub grant: Grant,
    /// Whether the person enters a code on a page, instead of a browser that is redirected.
    pub is_device: bool,
    pub redirect_uri: String,
    pub randomness: Randomness,
}

#[derive(Debug)]
pub enum Event<'a> {
    Started,
    Answered {
        answer: Answer<'a>,
        now_ms: u64,
    },
    /// The address at which the browser ended.
    Returned(&'a str),
    /// The pause of [`Step::Wait`] is over.
    Waited {
        now_ms: u64,
    },
}

#[derive(Debug)]
pub enum Step {
    Send(Request),
    /// The person opens this address. The shell waits for the redirect.
    Authorize(Url),
    /// The person enters a code on a page, and the shell waits. Later waits for the same code need no
    /// prompt.
    Wait {
        prompt: DevicePrompt,
        pause_ms: u64,
    },
    Done(Box<Credential>),
}

#[derive(Debug)]
pub struct Login {
    input: LoginInput,
    stage: Stage,
    requests: u32,
}

#[derive(Debug)]
enum Stage {
    /// The places that were not asked yet, the next one last.
    Resource {
        places: Vec<Url>,
    },
    Server {
        resource: ResourceMetadata,
        places: Vec<Url>,
    },
    Registration(Found),
    Authorization(Found, Client),
    DeviceCode(Found, Client),
    DeviceWait(Found, Client, Device),
    DeviceToken(Found, Client, Device),
    Token(Found, Client),
    Ended,
}

/// What discovery has found.
#[derive(Debug)]
struct Found {
    resource: ResourceMetadata,
    server: ServerMetadata,
}

impl Login {
    pub fn new(input: LoginInput) -> Result<Self, LoginError> {
        let named = input.challenge.resource_metadata.as_deref();
        let named = named.map(|it| checked(it, input.network)).transpose();
        let named = named.map_err(|why| LoginError::Address {
            what: "protected resource metadata",
            why,
        })?;
        let mut places = resource_places(&input.server, named);
        places.reverse();
        Ok(Self {
            input,
            stage: Stage::Resource { places },
            requests: 0,
        })
    }

    /// Whether the login waits for this address. Other addresses have nothing to do with it, and
    /// must not end it.
    #[must_use]
    pub fn is_answer(&self, address: &str) -> bool {
        redirect::has_state(
            address,
            &self.input.redirect_uri,
            &self.input.randomness.state,
        )
    }

    pub fn step(&mut self, event: Event<'_>) -> Result<Step, LoginError> {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        let (stage, step) = match (stage, event) {
            (Stage::Resource { places }, Event::Started) => self.ask_resource(places)?,
            (Stage::Resource { places }, Event::Answered { answer, .. }) => {
                self.on_resource(places, &answer)?
            }
            (Stage::Server { resource, places }, Event::Answered { answer, .. }) => {
                self.on_server(resource, places, &answer)?
            }
            (Stage::Registration(found), Event::Answered { answer, .. }) => {
                let client = Client::registered(&answer, &found.server)?;
                self.authorize(found, client)?
            }
            (Stage::Authorization(found, client), Event::Returned(address)) => {
                self.on_return(found, client, address)?
            }
            (Stage::DeviceCode(found, client), Event::Answered { answer, now_ms }) => {
                let device = Device::read(&answer, self.input.network, now_ms)?;
                Self::wait(found, client, device)
            }
            (Stage::DeviceWait(found, client, device), Event::Waited { now_ms }) => {
                // The number of questions is limited by the life of the code.
                self.requests = 0;
                Self::ask_about_device(found, client, device, now_ms)?
            }
            (Stage::DeviceToken(found, client, mut device), Event::Answered { answer, now_ms }) => {
                if device.is_pending(&answer) {
                    Self::wait(found, client, device)
                } else {
                    let credential = self.on_token(found, client, &answer, now_ms)?;
                    (Stage::Ended, Step::Done(Box::new(credential)))
                }
            }
            (Stage::Token(found, client), Event::Answered { answer, now_ms }) => {
                let credential = self.on_token(found, client, &answer, now_ms)?;
                (Stage::Ended, Step::Done(Box::new(credential)))
            }
            _ => return Err(LoginError::OutOfOrder),
        };
        if matches!(step, Step::Send(_)) {
            self.requests += 1;
            if self.requests > REQUESTS_MAX {
                return Err(LoginError::TooLong(REQUESTS_MAX));
            }
        }
        self.stage = stage;
        Ok(step)
    }

    fn ask_resource(&self, mut places: Vec<Url>) -> Result<(Stage, Step), LoginError> {
        match places.pop() {
            Some(next) => Ok((Stage::Resource { places }, Step::Send(Request::get(next)))),
            None => self.ask_server_of(ResourceMetadata::implied(&self.input.server)),
        }
    }

    fn on_resource(
        &self,
        places: Vec<Url>,
        answer: &Answer<'_>,
    ) -> Result<(Stage, Step), LoginError> {
        let read = ResourceMetadata::read(answer, &self.input.server, self.input.network)?;
        match read {
            Some(resource) => self.ask_server_of(resource),
            None => self.ask_resource(places),
        }
    }

    fn ask_server_of(&self, resource: ResourceMetadata) -> Result<(Stage, Step), LoginError> {
        if let Some(expected) = &self.input.issuer
            && *expected != resource.issuer
        {
            return Err(LoginError::OtherIssuer {
                named: shown(&resource.issuer),
                expected: expected.clone(),
            });
        }
        let issuer = checked(&resource.issuer, self.input.network);
        let issuer = issuer.map_err(|why| LoginError::Address {
            what: "authorization server",
            why,
        })?;
        let mut places = server_places(&issuer);
        places.reverse();
        Self::ask_server(resource, places)
    }

    fn ask_server(
        resource: ResourceMetadata,
        mut places: Vec<Url>,
    ) -> Result<(Stage, Step), LoginError> {
        match places.pop() {
            Some(next) => Ok((
                Stage::Server { resource, places },
                Step::Send(Request::get(next)),
            )),
            None => Err(LoginError::NoServerMetadata {
                issuer: resource.issuer,
            }),
        }
    }

    fn on_server(
        &self,
        resource: ResourceMetadata,
        places: Vec<Url>,
        answer: &Answer<'_>,
    ) -> Result<(Stage, Step), LoginError> {
        let read = ServerMetadata::read(answer, &resource.issuer, self.input.network)?;
        let Some(server) = read else {
            return Self::ask_server(resource, places);
        };
        // What makes a login impossible is found before anything is registered.
        match self.input.grant {
            Grant::AuthorizationCode if self.input.is_device => {
                server.device_endpoint().map(|_| ())?;
            }
            Grant::AuthorizationCode => server.authorization_endpoint().map(|_| ())?,
            Grant::ClientCredentials => {
                server.check_grant("client_credentials", "client credentials grant")?;
            }
        }
        let redirects = [self.input.redirect_uri.as_str()];
        let wanted = match self.input.is_device {
            true => Registration::Device,
            false => Registration::Redirects(&redirects),
        };
        let choice = ClientChoice::new(
            &server,
            self.input.client.as_ref(),
            self.input.client_metadata.as_deref(),
            &wanted,
        )?;
        let found = Found { resource, server };
        match choice {
            ClientChoice::Known(client) => self.authorize(found, client),
            ClientChoice::Register(request) => {
                Ok((Stage::Registration(found), Step::Send(request)))
            }
        }
    }

    fn authorize(&self, found: Found, client: Client) -> Result<(Stage, Step), LoginError> {
        let scopes = self.scopes(&found);
        if self.input.grant == Grant::ClientCredentials {
            let scopes = scopes.to_string();
            let mut fields = vec![
                ("grant_type", "client_credentials"),
                ("resource", found.resource.resource.as_str()),
            ];
            if !scopes.is_empty() {
                fields.push(("scope", &scopes));
            }
            let (url, issuer) = (found.server.token_endpoint.clone(), &found.server.issuer);
            let request = client.request(url, issuer, &fields);
            return Ok((Stage::Token(found, client), Step::Send(request)));
        }
        if self.input.is_device {
            let scopes = scopes.to_string();
            let mut fields = vec![("resource", found.resource.resource.as_str())];
            if !scopes.is_empty() {
                fields.push(("scope", &scopes));
            }
            let url = found.server.device_endpoint()?.clone();
            let request = client.request(url, &found.server.issuer, &fields);
            return Ok((Stage::DeviceCode(found, client), Step::Send(request)));
        }
        let mut address = found.server.authorization_endpoint()?.clone();
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", &self.input.redirect_uri)
            .append_pair("state", &self.input.randomness.state)
            .append_pair("code_challenge", &self.input.randomness.challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &found.resource.resource);
        if !scopes.is_empty() {
            let scope = scopes.to_string();
            address.query_pairs_mut().append_pair("scope", &scope);
        }
        if scopes.contains(ScopeSet::OFFLINE_ACCESS) {
            // OpenID Connect Core section 11 demands it for offline access.
            address.query_pairs_mut().append_pair("prompt", "consent");
        }
        Ok((
            Stage::Authorization(found, client),
            Step::Authorize(address),
        ))
    }

    fn wait(found: Found, client: Client, device: Device) -> (Stage, Step) {
        let (prompt, pause_ms) = (device.prompt.clone(), device.pause_ms);
        let step = Step::Wait { prompt, pause_ms };
        (Stage::DeviceWait(found, client, device), step)
    }

    fn ask_about_device(
        found: Found,
        client: Client,
        device: Device,
        now_ms: u64,
    ) -> Result<(Stage, Step), LoginError> {
        if device.is_over(now_ms) {
            return Err(LoginError::Refused("the code has expired".to_owned()));
        }
        let fields = [
            ("grant_type", DEVICE_GRANT),
            ("device_code", device.prompt.device_code.as_str()),
            ("resource", &found.resource.resource),
        ];
        let (url, issuer) = (found.server.token_endpoint.clone(), &found.server.issuer);
        let request = client.request(url, issuer, &fields);
        Ok((
            Stage::DeviceToken(found, client, device),
            Step::Send(request),
        ))
    }

    /// Returns the scopes to ask for: what the person wants, or else the challenge's, or else all
    /// that the server lists.
    fn scopes(&self, found: &Found) -> ScopeSet {
        let challenged = &self.input.challenge.scopes;
        let is_step_up = self.input.challenge.is_insufficient_scope();
        let mut scopes = match &self.input.scopes {
            Some(wanted) if is_step_up => wanted.union(challenged),
            Some(wanted) => return wanted.clone(),
            None if !challenged.is_empty() => challenged.clone(),
            None => found.resource.scopes.clone(),
        };
        if is_step_up {
            scopes = scopes.union(&self.input.earlier_scopes);
        }
        let offline = ScopeSet::OFFLINE_ACCESS;
        match (self.input.grant, found.server.scopes.contains(offline)) {
            (Grant::AuthorizationCode, true) => scopes.union(&ScopeSet::parse(offline)),
            _ => scopes.iter().filter(|scope| *scope != offline).collect(),
        }
    }

    fn on_return(
        &self,
        found: Found,
        client: Client,
        address: &str,
    ) -> Result<(Stage, Step), LoginError> {
        let code = redirect::code(
            address,
            &Expected {
                redirect_uri: &self.input.redirect_uri,
                state: &self.input.randomness.state,
                issuer: &found.server.issuer,
                names_issuer: found.server.names_issuer,
            },
        )?;
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", &self.input.redirect_uri),
            ("code_verifier", &self.input.randomness.verifier),
            ("resource", &found.resource.resource),
        ];
        let (url, issuer) = (found.server.token_endpoint.clone(), &found.server.issuer);
        let request = client.request(url, issuer, &fields);
        Ok((Stage::Token(found, client), Step::Send(request)))
    }

    fn on_token(
        &self,
        found: Found,
        client: Client,
        answer: &Answer<'_>,
        now_ms: u64,
    ) -> Result<Credential, LoginError> {
        let token = TokenAnswer::read(answer, "login", now_ms)?;
        let asked = self.scopes(&found);
        let revocation = found.server.revocation_endpoint.map(String::from);
        Ok(Credential {
            resource: found.resource.resource,
            issuer: found.server.issuer,
            client,
            grant: self.input.grant,
            token_endpoint: found.server.token_endpoint.into(),
            revocation_endpoint: revocation,
            access_token: token.access_token,
            refresh_token: token.refresh_token,
            scopes: token.scopes.unwrap_or(asked),
            issued_at_ms: now_ms,
            expires_at_ms: token.expires_at_ms,
        })
    }
}
