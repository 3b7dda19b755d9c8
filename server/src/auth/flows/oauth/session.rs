//! The end of a grant with an external identity: its user's session.

use actix_web::HttpResponse;

use super::account::Outcome;
use crate::auth::credentials::tokens;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult};
use crate::auth::models::store::Db;
use crate::auth::outside::hooks;

/// Answers with a session of the user that `identify` finds or creates, both in one transaction. `method` is the
/// session's `amr` entry.
///
/// Errors: those of `identify`; OAuth's shape `server_error` for a fault.
pub async fn answer(
    request: &Request,
    db: &Db,
    method: &str,
    identify: impl AsyncFn(&Db) -> AuthResult<Outcome>,
) -> AuthResult<HttpResponse> {
    let grant = request.grant();
    let outcome = db
        .transaction_beside_others(async |db| match identify(db).await? {
            Outcome::User(user, created) => Ok(Ok((tokens::issue(request, db, *user, method, &grant).await?, created))),
            // What was stored stays.
            Outcome::Refused(error) => Ok(Err(error)),
        })
        .await
        .map_err(|error| match error {
            AuthError::Unhandled(fault) => {
                tracing::error!(request_id = request.id, %fault, "auth: the {method} grant failed");
                AuthError::oauth("server_error", "Internal Server Error")
            }
            meant => meant,
        })?;
    let (answer, created) = outcome?;
    if created {
        hooks::after_user_created(request, db, &answer.user).await?;
    }
    answer.respond()
}
