//! API tests of the full server: an actor sends HTTP requests, and the whole reply is checked.

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
mod storage_alone;
mod storage_attacks;
mod storage_details;
#[cfg(feature = "images")]
mod storage_images;
mod storage_moves;
mod storage_resumable;
mod storage_routes;
mod storage_s3;
mod storage_settings;
mod storage_store;
mod storage_versions;
mod third_party;
mod types;
mod uploads;
mod web;
