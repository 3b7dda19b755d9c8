//! The flows of the API, one file each.

pub mod admin;
pub mod changes;
pub mod custom_providers;
pub mod discovery;
pub mod identities;
pub mod logout;
pub mod mfa;
pub mod oauth;
pub mod oauth_server;
pub mod passkeys;
pub mod recover;
pub mod signup;
pub mod token;
pub mod user;
pub mod verify;
pub mod web3;
