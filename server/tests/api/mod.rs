//! API tests of the full server: requests over HTTP by an actor, the whole reply checked.

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
mod storage_images;
mod storage_moves;
mod storage_resumable;
mod storage_routes;
mod storage_s3;
mod storage_settings;
mod storage_store;
mod types;
mod uploads;
mod web;
