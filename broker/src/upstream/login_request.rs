//! Handles calls that a server refuses until a person has logged in. The person is asked to open the
//! address of the login, and the call is sent again. A status of 401 or 403 proves that the server
//! has done nothing.

use airlock_core::inquiry::InquiryLogin;
use airlock_core::login::Challenge;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::outgoing::LinkError;
use super::server_request::{CallOrigin, Completion};
use crate::login::{CallbackListener, DEFAULT_CALLBACK_PATH, LoginVersion, ServerLogin};

/// Maximum number of times that one call is sent again after a login: one login without a scope,
/// one for the scope, and one that another call has led to.
pub(super) const LOGINS_MAX: usize = 3;

const DID_NOT: &str = "the person did not log in";
const ENDING: &str = "the run ended before the call could be sent again";

/// Asks a person to log in. Returns `refused`, with the reason, if no person can be asked or the
/// person does not log in. `used` is the version of the login with which the call was refused.
pub(super) async fn after_refusal(
    refused: LinkError,
    used: Option<LoginVersion>,
    login: Option<&ServerLogin>,
    origin: Option<&CallOrigin>,
) -> Result<(), LinkError> {
    let LinkError::LoginRequired {
        why,
        next,
        challenge,
    } = refused
    else {
        return Err(refused);
    };
    let failed = match (login, origin) {
        (Some(login), Some(origin)) if origin.can_log_in() && login.needs_person() => {
            match log_in(login, used, &challenge, origin).await {
                Ok(()) if origin.is_ending() => format!("{why}; {ENDING}"),
                Ok(()) => return Ok(()),
                Err(failed) => format!("{why}; {failed}"),
            }
        }
        _ => why,
    };
    Err(LinkError::LoginRequired {
        why: failed,
        next,
        challenge,
    })
}

/// Asks one person at a time, because all runs share the login.
async fn log_in(
    login: &ServerLogin,
    used: Option<LoginVersion>,
    challenge: &Challenge,
    origin: &CallOrigin,
) -> Result<(), &'static str> {
    let _held = origin.deadline.hold();
    let since = Instant::now();
    let mut last_in_vain = tokio::select! {
        biased;
        () = origin.ending() => return Err(ENDING),
        held = login.asking().lock() => held,
    };
    // Another call, or another process, has led to a login meanwhile.
    if login.version() != used {
        return Ok(());
    }
    let person = origin.person();
    if let Some((at, asked)) = &*last_in_vain
        && *at > since
        && *asked == person
    {
        return Err("a person was asked to log in, and did not");
    }
    let logged_in = ask(login, challenge, origin).await;
    if logged_in == Err(DID_NOT) {
        *last_in_vain = Some((Instant::now(), person));
    }
    logged_in
}

/// Asks the person to open the address, and waits for the browser. The reasons contain nothing of
/// the authorization server, because scripts see them.
async fn ask(
    login: &ServerLogin,
    challenge: &Challenge,
    origin: &CallOrigin,
) -> Result<(), &'static str> {
    const FAILED: &str = "the login failed; the command shows the reason";
    let callback = login.settings().callback.as_deref();
    let listener = CallbackListener::bind(callback, DEFAULT_CALLBACK_PATH).await;
    let listener = listener.map_err(|_| "the port for the answer of the browser is not free")?;
    let begun = login.begin(challenge.clone(), None, listener.redirect_uri());
    let personal = match begun.await {
        Ok(Ok(personal)) => personal,
        Ok(Err(_)) => return Ok(()),
        Err(_) => return Err(FAILED),
    };
    let message = "The call needs a login. Log in at this address, in a browser on the machine of \
                   airlock. The call is then made";
    let params = json!({"mode": "url", "message": message, "url": &personal.address});
    let params = RawValue::from_string(params.to_string()).map_err(|_| FAILED)?;
    let inquiry = origin.read("elicitation/create", Some(&params));
    let inquiry = inquiry.map_err(|_| "nobody could be asked to log in")?;
    let (tell, told) = oneshot::channel();
    let logging_in = async {
        let address = listener.redirected(|it| personal.is_answer(it)).await;
        let address = address.map_err(|_| FAILED)?;
        let finished = login.finish(personal, address).await;
        finished.map_err(|_| FAILED)
    };
    let asking = origin.ask_first(inquiry, Completion::Login(told));
    tokio::pin!(logging_in, asking);
    tokio::select! {
        biased;
        finished = &mut logging_in => {
            // Without a login, `tell` is dropped, which ends the question too.
            let logged_in = finished.map(|(credential, _)| {
                drop(tell.send(InquiryLogin {
                    issuer: credential.issuer,
                    scopes: credential.scopes,
                }));
            });
            // The run records the login before the call is sent again.
            let _ = asking.await;
            logged_in
        }
        // The question has ended without a login.
        told = &mut asking => Err(match told {
            // The person declined, or let the time pass.
            Ok(_) => DID_NOT,
            Err(_) if origin.is_ending() => ENDING,
            Err(_) => "nobody could be asked to log in",
        }),
    }
}
