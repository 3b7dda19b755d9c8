//! Stands for [`super::tls`] in a build without Cargo's feature `https`.

use std::convert::Infallible;
use std::net::TcpListener;
use std::path::Path;

use super::listen::Listener;
use crate::config::TlsConfig;

pub const ACME_FOLDER: &str = "acme";

/// There is none.
pub struct Tls(Infallible);

impl Tls {
    pub fn open(_: &TlsConfig, _: &Path) -> anyhow::Result<Self> {
        anyhow::bail!("FERROBASE_TLS_LISTEN: this build serves no HTTPS (Cargo's feature https)")
    }

    pub fn listener(&self, _: TcpListener) -> Listener {
        match self.0 {}
    }

    pub fn keep(self) {
        match self.0 {}
    }
}
