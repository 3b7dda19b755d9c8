//! Stands for [`super::picture`] in a build without Cargo's feature `images`.

use std::convert::Infallible;

use super::options::{Accepted, Options, SideLimits, SourceLimits};
use super::rendered::{Fault, Rendered};

pub const MOST_MEMORY: u64 = 1 << 20;

pub fn decoded(_file: Vec<u8>, _codings: &str, _most: u64) -> Result<Vec<u8>, Fault> {
    Err(Fault::Absent)
}

/// There is none.
pub struct Source(Infallible);

impl Source {
    pub fn open(_file: &[u8], _limits: &SourceLimits) -> Result<Self, Fault> {
        Err(Fault::Absent)
    }

    pub fn memory(&self) -> u64 {
        match self.0 {}
    }

    pub fn render(self, _options: &Options, _sides: SideLimits, _accepted: &Accepted) -> Result<Rendered, Fault> {
        match self.0 {}
    }
}
