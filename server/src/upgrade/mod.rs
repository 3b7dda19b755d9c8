//! Upgrades: what this binary would do to a database ([`check`]), and the change of the embedded PostgreSQL to a later major version
//! ([`major`]), which leaves the former cluster untouched until the new one has answered.
//!
//! `programs` finds PostgreSQL's own `pg_upgrade` and what it needs, `facts` compares the cluster before and after, `control` stands in
//! for two programs that the npm packages lack. Why it is done so: `docs/decisions/upgrades.md`.

mod check;
mod control;
mod error;
mod facts;
mod major;
mod programs;

pub use check::{Report, Subject, check};
pub use error::UpgradeError;
pub use major::{Outcome, Upgraded, back, clear, major};
pub use programs::Places;
