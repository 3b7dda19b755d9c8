//! What comes in: the request and who makes it, its limits, and where its answer may lead.

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
