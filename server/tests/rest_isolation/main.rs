//! The REST API under load and pressure: isolation between callers, limits, long results.

#![allow(clippy::expect_used, clippy::panic)]

mod fixture;
mod isolation;
mod limits;
