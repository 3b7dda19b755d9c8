//! Reads the body of a request as a whole, within the server's memory budget.

use actix_web::{HttpRequest, web};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use super::authenticate::Identity;
use super::error::{ApiError, DatabaseFault, Limit};
use super::request::payload::MAX_BODY;
use super::request::{self, Action, CallMethod, Mutation, RawRequest, RequestRules};
use super::state::Rest;
use crate::db::DbError;
use crate::http::bodies::{BEGINNING, is_no_room, pass_on};

/// Reads the body of `head`. A body that is not used is read and dropped. Before more than its beginning is read, the
/// head must be valid and `identity` allowed to write there.
pub async fn read(
    request: &HttpRequest,
    mut payload: web::Payload,
    head: &RawRequest<'_>,
    rules: &RequestRules<'_>,
    rest: &Rest,
    identity: &Identity,
) -> Result<Bytes, ApiError> {
    let is_used = matches!(head.method, "POST" | "PATCH" | "PUT");
    let announced: Option<usize> = head.header("content-length").and_then(|length| length.parse().ok());
    let longest = MAX_BODY.min(usize::try_from(rest.bodies.longest()).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > longest) {
        return Err(ApiError::TooLarge(Limit::Body));
    }
    let mut is_allowed = false;
    let mut first: Option<Bytes> = None;
    let mut gathered = BytesMut::new();
    let mut length = 0;
    if !is_used {
        pass_on(request);
    } else if announced.is_some_and(|length| length > BEGINNING as usize) {
        Box::pin(require_allowed(head, rules, rest, identity)).await?;
        is_allowed = true;
    }
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| match is_no_room(&error) {
            true => ApiError::NoRoomForBody,
            false => ApiError::Body(format!("The request body cannot be read: {error}")),
        })?;
        length += chunk.len();
        if length > longest {
            return Err(ApiError::TooLarge(Limit::Body));
        }
        if !is_used {
            continue;
        }
        if length > BEGINNING as usize && !is_allowed {
            Box::pin(require_allowed(head, rules, rest, identity)).await?;
            is_allowed = true;
        }
        // Usually there is a single chunk, which need not be copied.
        match (&first, gathered.is_empty()) {
            (None, true) => first = Some(chunk),
            (Some(_), _) => {
                // Only received bytes take memory, whatever `Content-Length` says.
                gathered.reserve(announced.unwrap_or_default().max(length));
                if let Some(start) = first.take() {
                    gathered.extend_from_slice(&start);
                }
                gathered.extend_from_slice(&chunk);
            }
            (None, false) => gathered.extend_from_slice(&chunk),
        }
    }
    Ok(first.unwrap_or_else(|| gathered.freeze()))
}

/// Refuses, with PostgreSQL's message, a role that cannot write anything there. If that cannot be determined, or a pre-request may
/// switch to another role, PostgreSQL refuses once the body has arrived.
async fn require_allowed(
    head: &RawRequest<'_>,
    rules: &RequestRules<'_>,
    rest: &Rest,
    identity: &Identity,
) -> Result<(), ApiError> {
    let (schema, action) = request::target(head, rules)?;
    let (name, privilege) = match &action {
        Action::Mutate { relation, mutation: Mutation::Insert | Mutation::SingleUpsert } => (relation, "INSERT"),
        Action::Mutate { relation, mutation: Mutation::Update } => (relation, "UPDATE"),
        Action::Call { function, method: CallMethod::Post } => (function, "EXECUTE"),
        _ => return Ok(()),
    };
    let settings = rest.live.settings();
    if settings.config.pre_request.is_some() {
        return Ok(());
    }
    match refusal(rest, &schema, name, &identity.role, privilege).await {
        Ok(None) => Ok(()),
        Ok(Some(message)) => {
            let authenticated = settings.config.anon_role.as_deref() != Some(&*identity.role);
            Err(ApiError::Database(DatabaseFault::forbidden(message, authenticated)))
        }
        Err(error) => {
            tracing::debug!(%error, "whether a role may write could not be found out");
            Ok(())
        }
    }
}

async fn refusal(
    rest: &Rest,
    schema: &str,
    name: &str,
    role: &str,
    privilege: &str,
) -> Result<Option<String>, DbError> {
    use tokio_postgres::types::Type;
    let connection = rest.live.pool().lease().await?;
    let rows = connection
        .query_typed(
            include_str!("may_write.sql"),
            &[(&schema, Type::TEXT), (&name, Type::TEXT), (&role, Type::TEXT), (&privilege, Type::TEXT)],
        )
        .await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.flatten())
}
