//! Ferrobase: a Supabase-compatible backend in one binary on PostgreSQL.
//!
//! A request enters through [`app`], passes the [`gateway`] (which key, which role) and reaches one of the
//! APIs: [`rest`] (PostgREST), [`auth`] (GoTrue), [`functions`] (PostgreSQL functions), [`realtime`] (channels), or [`web`] (the
//! embedded web app). The APIs never import one another. What two of them need lives below them:
//! [`sms`] on [`mail`], [`schema_cache`] and [`mail`] on [`db`], [`db`] on [`http`], [`http`] on [`config`], [`config`] on [`jwt`], [`jwt`] on
//! [`secret`].
//!
//! [`project`] reads a folder made for the Supabase CLI.
//!
//! Around the request path: [`admin`] reports health and metrics, [`embedded_pg`] runs PostgreSQL if no database is configured,
//! [`migrate`] brings a database up to date, [`jobs`] runs what the database queues (HTTP requests, scheduled commands), [`backup`] copies all of it
//! and brings it back, [`cli`] holds the commands and [`telemetry`] the logs and traces.

pub mod admin;
pub mod app;
pub mod auth;
pub mod backup;
pub mod cli;
pub mod config;
pub mod db;
pub mod embedded_pg;
pub mod functions;
pub mod gateway;
pub mod http;
pub mod jobs;
pub mod jwt;
pub mod mail;
pub mod migrate;
pub mod project;
pub mod realtime;
pub mod rest;
pub mod schema_cache;
pub mod secret;
pub mod sms;
pub mod storage;
pub mod telemetry;
pub mod web;
