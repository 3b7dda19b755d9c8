//! The stored rows behind a refresh token.

use tokio_postgres::Row;

use crate::auth::error::Fault;
use crate::auth::models::refresh_token::{self, RefreshToken};
use crate::auth::models::session::{self, Session};
use crate::auth::models::user::{self, User};

/// A token's session and user. `stored` is set for tokens of the first format.
pub struct Found {
    pub user: User,
    pub session: Session,
    pub stored: Option<RefreshToken>,
}

/// The columns of a token `t`, its session `s` and its user `u`, in the order [`Found::from_row`] reads them.
pub fn columns() -> String {
    [refresh_token::COLUMNS, session::COLUMNS, user::COLUMNS, user::RELATIONS].join(", ")
}

impl Found {
    /// Reads [`columns`]; further columns are ignored.
    pub fn from_row(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            stored: Some(RefreshToken::from_row(row)?),
            session: Session::from_row(row, refresh_token::WIDTH)?,
            user: User::from_row(row, refresh_token::WIDTH + session::WIDTH)?,
        })
    }
}
