//! Hooks that are PostgreSQL functions: one jsonb in, one jsonb out, two seconds at most.

use serde_json::Value;

use super::failed;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthResult, Fault};
use crate::auth::models::store::Db;

/// Calls the function that `uri` (`pg-functions://<any>/<schema>/<function>`) names.
pub(super) async fn call(request: &Request, db: Option<&Db>, uri: &str, input: &Value) -> AuthResult<Option<Value>> {
    let mut parts = uri.trim_start_matches("pg-functions:").trim_start_matches('/').split('/').skip(1);
    let (Some(schema), Some(function)) = (parts.next(), parts.next()) else {
        return Err(failed(uri, Fault::new("the address of the hook names no function")));
    };
    // Both names were checked at start to be plain identifiers.
    let statement = format!("select \"{schema}\".\"{function}\"($1)");
    let own;
    let db = match db {
        Some(db) => db,
        None => {
            own = request.db().await?;
            &own
        }
    };
    // The timeout is local to the transaction: the open one, or one only for this call.
    let answer = if db.in_transaction() {
        run(db, &statement, input).await
    } else {
        db.transaction(async |db| Ok(run(db, &statement, input).await)).await?
    };
    answer.map_err(|fault| failed(uri, fault))
}

async fn run(db: &Db, statement: &str, input: &Value) -> Result<Option<Value>, Fault> {
    db.batch("set local statement_timeout = 2000").await?;
    let row = db.query_one(statement, &[input]).await?;
    db.batch("set local statement_timeout to default").await?;
    Ok(row.try_get(0)?)
}
