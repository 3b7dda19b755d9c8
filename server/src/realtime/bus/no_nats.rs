//! Stands for [`super::nats`] in a build without Cargo's feature `nats`.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;

use crate::config::Secret;
use crate::realtime::Inner;

/// There is none.
#[derive(Clone, Debug)]
pub struct NatsConfig(Infallible);

impl NatsConfig {
    pub fn parse(_url: Secret, _subject: Option<String>) -> Result<Self, String> {
        Err("FERROBASE_BUS_URL: this build has no NATS (Cargo's feature nats)".to_owned())
    }
}

pub async fn run(_inner: &Arc<Inner>, config: &NatsConfig, _waiting: &mut Receiver<Bytes>) {
    match config.0 {}
}
