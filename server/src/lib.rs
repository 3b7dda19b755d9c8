//! Ferrobase: a Supabase-compatible backend in one binary on PostgreSQL.
//!
//! A request enters through [`app`], passes the [`gateway`] (which key, which role) and reaches one of the
//! APIs: [`rest`] (PostgREST), [`auth`] (GoTrue), [`functions`] (PostgreSQL functions), or [`web`] (the
//! embedded web app). The APIs never import one another; what two of them need lives below them:
//! [`schema_cache`] and [`mail`] on [`db`], [`db`] on [`http`], [`http`] on [`config`], [`config`] on [`jwt`], [`jwt`] on
//! [`secret`].
//!
//! Around the road: [`admin`] tells those who run it how it fares, [`embedded_pg`] runs PostgreSQL where nobody else does, [`migrate`] brings a database up
//! to date, [`cli`] holds the commands other than `serve`, [`telemetry`] the logs.

pub mod admin;
pub mod app;
pub mod auth;
pub mod cli;
pub mod config;
pub mod db;
pub mod embedded_pg;
pub mod functions;
pub mod gateway;
pub mod http;
pub mod jwt;
pub mod mail;
pub mod migrate;
pub mod rest;
pub mod schema_cache;
pub mod secret;
pub mod storage;
pub mod telemetry;
pub mod web;
