//! API tests of the full server: requests over HTTP by an actor, the whole reply checked.

#![allow(clippy::expect_used, clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../rest/wire.rs"]
mod wire;

mod attacks;
mod auth_factors;
mod auth_providers;
mod functions;
mod gateway;
mod keys;
mod policies;
mod proofs;
mod rest;
mod storage;
mod types;
mod web;
