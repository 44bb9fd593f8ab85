//! Logins to servers: sends what [`airlock_core::login`] decides, stores the tokens sealed, and
//! renews them. No other module sends requests to authorization servers.

mod authorization_client;
mod callback;
mod client_key;
pub(crate) mod keyring;
mod keys;
mod renewals;
mod server_login;
mod settings;
mod store;
mod store_error;
mod wall_clock;

pub(crate) use callback::CallbackListener;
pub(crate) use client_key::ClientKey;
pub(crate) use keys::KeyPlace;
pub(crate) use renewals::finish_before_exit;
pub(crate) use server_login::{LoginFailure, Person, PersonalLogin, ServerLogin};
pub(crate) use settings::{DEFAULT_CALLBACK_PATH, KeyChoice, LoginSettings, OauthConfig};
pub(crate) use store::{LoginStore, LoginVersion, StoredLogin};
pub(crate) use store_error::StoreError;
pub(crate) use wall_clock::now_ms;
