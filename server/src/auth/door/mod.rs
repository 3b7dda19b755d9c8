//! The request: the caller, rate limits, and where a redirect may lead.

pub mod address;
pub mod bearer;
pub mod claims;
pub mod cors;
pub mod guesses;
pub mod limits;
pub mod location;
pub mod params;
pub mod query;
pub mod redirect;
pub mod request;
