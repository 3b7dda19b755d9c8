//! The REST API under load and pressure: isolation between callers, limits, long results.

mod fixture;
mod http;
mod isolation;
mod limits;
mod long;
mod order;
mod retyped;
mod secured;
