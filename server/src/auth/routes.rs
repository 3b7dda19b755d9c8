//! The table of contents: paths, methods and guards. Reference: supabase/auth `internal/api/api.go`.
//!
//! The guard of a group of routes answers first, whatever the method or rest of the path. A trailing slash is
//! accepted only where upstream's router has a collection.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};

use crate::auth::Auth;
use crate::auth::door::request::{BODY_LIMIT, Body, Request};
use crate::auth::door::{bearer, cors};
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::flows::{
    admin, custom_providers, discovery, identities, logout, mfa, oauth, oauth_server, passkeys, recover, signup, token,
    user, verify,
};
use crate::http::context::id_of;

/// Answers every request below the mount.
pub async fn handle(http: HttpRequest, payload: web::Payload, auth: web::Data<Auth>) -> HttpResponse {
    let auth = auth.into_inner();
    if cors::is_preflight(http.method(), http.headers()) {
        return cors::preflight(http.headers(), &auth.config);
    }
    let id = id_of(&http);
    let body = read_body(payload).await;
    let path = http.uri().path();
    let path = path.strip_prefix(auth.mount.as_str()).unwrap_or(path).to_owned();
    let deadline = auth.config.max_request_duration;
    let request = Request::new(Arc::clone(&auth), http.clone(), path, body, id.clone());
    let answered = AssertUnwindSafe(tokio::time::timeout(deadline, boxed(route(&request)))).catch_unwind().await;
    let mut response = match answered {
        Ok(Ok(Ok(response))) => response,
        Ok(Ok(Err(error))) => error.respond(http.headers(), &id),
        Ok(Err(_)) => timed_out().respond(http.headers(), &id),
        Err(_) => {
            tracing::error!(request_id = id, "auth: a request panicked");
            let error = AuthError::Hook {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                message: "Internal Server Error".to_owned(),
            };
            error.respond(http.headers(), &id)
        }
    };
    request.finish(&mut response);
    cors::permit(&mut response, http.headers());
    response
}

fn timed_out() -> AuthError {
    let message = "Processing this request timed out, please retry after a moment.";
    AuthError::new(StatusCode::GATEWAY_TIMEOUT, Code::RequestTimeout, message)
}

async fn read_body(mut payload: web::Payload) -> Body {
    let mut bytes = Vec::new();
    while let Some(chunk) = payload.next().await {
        match chunk {
            Ok(chunk) if bytes.len() + chunk.len() <= BODY_LIMIT => bytes.extend_from_slice(&chunk),
            Ok(_) => return Body::TooLarge,
            Err(_) => break,
        }
    }
    Body::Bytes(bytes)
}

/// An answer to come, on the heap: otherwise one function would be compiled from all flows, with code to drop each of them half way.
fn boxed<'a>(
    answer: impl Future<Output = AuthResult<HttpResponse>> + 'a,
) -> LocalBoxFuture<'a, AuthResult<HttpResponse>> {
    Box::pin(answer)
}

/// Runs the arm of the request's method, or answers 405 with the available methods.
macro_rules! methods {
    ($request:expr, $($method:ident => $answer:expr,)+) => {
        match *$request.method() {
            $(Method::$method => boxed(async { $answer }).await,)+
            _ => Err(AuthError::MethodNotAllowed(vec![$(Method::$method),+])),
        }
    };
}

async fn route(request: &Request) -> AuthResult<HttpResponse> {
    let path = request.path();
    let mut segments = path.split('/').skip(1).collect::<Vec<_>>();
    let slash = segments.len() > 1 && segments.last() == Some(&"");
    if slash {
        segments.pop();
    }
    match (segments.as_slice(), slash) {
        (["health"], false) => methods!(request, GET => discovery::health(),),
        (["settings"], false) => methods!(request, GET => discovery::settings(request),),
        ([".well-known", "jwks.json"], false) => methods!(request, GET => discovery::jwks(request),),
        ([".well-known", "openid-configuration"], false) => {
            methods!(request, GET => discovery::openid_configuration(request),)
        }
        ([".well-known", "oauth-authorization-server"], false) => {
            methods!(request, GET => {
                oauth_server::require_enabled(request)?;
                discovery::openid_configuration(request)
            },)
        }
        (["authorize"], false) => methods!(request, GET => oauth::authorize(request).await,),
        (["callback"], _) => boxed(oauth::callback(request)).await,
        (["signup"], _) => methods!(request, POST => signup::signup(request).await,),
        (["token"], false) => methods!(request, POST => token::token(request).await,),
        (["otp"], false) => methods!(request, POST => recover::otp(request).await,),
        (["magiclink"], false) => methods!(request, POST => recover::magic_link(request).await,),
        (["recover"], false) => methods!(request, POST => recover::recover(request).await,),
        (["resend"], false) => methods!(request, POST => recover::resend(request).await,),
        (["verify"], _) => {
            methods!(request, GET => verify::get(request).await, POST => verify::post(request).await,)
        }
        (["logout"], false) => {
            methods!(request, POST => {
                logout::logout(request, bearer::require_user_or_client(request).await?).await
            },)
        }
        (["reauthenticate", rest @ ..], _) => {
            let caller = bearer::require_user(request).await?;
            match rest {
                [] => methods!(request, GET => recover::reauthenticate(request, caller).await,),
                _ => Err(AuthError::RouteNotFound),
            }
        }
        (["user"], _) if *request.method() == Method::GET => boxed(user::get(request)).await,
        (["user", rest @ ..], _) => {
            let caller = bearer::require_user(request).await?;
            boxed(user_routes(request, rest, caller)).await
        }
        (["factors", rest @ ..], _) => {
            let caller = bearer::require_user(request).await?;
            bearer::refuse_anonymous(&caller)?;
            boxed(factor_routes(request, rest, slash, caller)).await
        }
        (["oauth", rest @ ..], _) => {
            oauth_server::require_enabled(request)?;
            boxed(oauth_routes(request, rest, slash)).await
        }
        (["passkeys", rest @ ..], _) => {
            passkeys::require_enabled(request)?;
            boxed(passkey_routes(request, rest, slash)).await
        }
        (["sso", ..], _) => require_saml(),
        (["scim", "v2", ..], _) => Err(AuthError::not_found(Code::FeatureDisabled, "SCIM server is disabled")),
        (["invite"], false) => {
            methods!(request, POST => admin::invite(request, bearer::require_admin(request).await?).await,)
        }
        (["admin", rest @ ..], slash) => {
            let admin = bearer::require_admin(request).await?;
            boxed(admin_routes(request, rest, slash, admin)).await
        }
        _ => Err(AuthError::RouteNotFound),
    }
}

/// This server does not read SAML assertions, so the feature answers as if it were off.
fn require_saml() -> AuthResult<HttpResponse> {
    Err(AuthError::not_found(Code::SamlProviderDisabled, "SAML 2.0 is disabled"))
}

async fn factor_routes(
    request: &Request,
    rest: &[&str],
    slash: bool,
    caller: bearer::Caller,
) -> AuthResult<HttpResponse> {
    let [id, rest @ ..] = rest else {
        return methods!(request, POST => mfa::enroll(request, caller).await,);
    };
    if *id == "recovery-codes" {
        use mfa::recovery_codes;
        return match (rest, slash) {
            ([], _) => methods!(request,
                GET => recovery_codes::status(request, caller).await,
                POST => recovery_codes::generate(request, caller).await,
                DELETE => recovery_codes::delete(request, caller).await,
            ),
            (["verify"], false) => methods!(request, POST => recovery_codes::redeem(request, caller).await,),
            (["regenerate"], false) => methods!(request, POST => recovery_codes::regenerate(request, caller).await,),
            _ => Err(AuthError::RouteNotFound),
        };
    }
    let factor = mfa::load(request, caller.user.id, id).await?;
    match (rest, slash) {
        ([], _) => methods!(request, DELETE => mfa::unenroll(request, caller, factor).await,),
        (["challenge"], false) => methods!(request, POST => mfa::challenge(request, caller, factor).await,),
        (["verify"], false) => methods!(request, POST => mfa::verify(request, caller, factor).await,),
        _ => Err(AuthError::RouteNotFound),
    }
}

async fn oauth_routes(request: &Request, rest: &[&str], slash: bool) -> AuthResult<HttpResponse> {
    match (rest, slash) {
        (["clients", "register"], false) => methods!(request, POST => oauth_server::register(request).await,),
        (["token"], false) => methods!(request, POST => oauth_server::token(request).await,),
        (["authorize"], false) => methods!(request, GET => oauth_server::authorize(request).await,),
        (["userinfo"], false) => methods!(request, GET => {
            let caller = bearer::require_user_or_client(request).await?;
            oauth_server::userinfo(request, caller).await
        },),
        (["authorizations", id], false) => methods!(request, GET => {
            let caller = bearer::require_user(request).await?;
            oauth_server::view(request, caller, id).await
        },),
        (["authorizations", id, "consent"], false) => methods!(request, POST => {
            let caller = bearer::require_user(request).await?;
            oauth_server::consent(request, caller, id).await
        },),
        _ => Err(AuthError::RouteNotFound),
    }
}

async fn admin_client_routes(request: &Request, rest: &[&str], slash: bool) -> AuthResult<HttpResponse> {
    let [id, rest @ ..] = rest else {
        return methods!(request,
            GET => oauth_server::list(request).await,
            POST => oauth_server::create(request).await,
        );
    };
    let client = oauth_server::load(request, id).await?;
    match (rest, slash) {
        ([], _) => methods!(request,
            GET => oauth_server::show(&client),
            PUT => oauth_server::update(request, client).await,
            DELETE => oauth_server::delete(request, &client).await,
        ),
        (["regenerate_secret"], false) => {
            methods!(request, POST => oauth_server::regenerate_secret(request, client).await,)
        }
        _ => Err(AuthError::RouteNotFound),
    }
}

async fn passkey_routes(request: &Request, rest: &[&str], slash: bool) -> AuthResult<HttpResponse> {
    match rest {
        [] => methods!(request, GET => {
            let caller = bearer::require_user(request).await?;
            passkeys::list(request, caller.user.id).await
        },),
        ["authentication", rest @ ..] => match (rest, slash) {
            (["options"], false) => methods!(request, POST => passkeys::authentication_options(request).await,),
            (["verify"], false) => methods!(request, POST => passkeys::verify_authentication(request).await,),
            _ => Err(AuthError::RouteNotFound),
        },
        ["registration", rest @ ..] => {
            let caller = bearer::require_user(request).await?;
            bearer::refuse_anonymous(&caller)?;
            match (rest, slash) {
                (["options"], false) => {
                    methods!(request, POST => passkeys::registration_options(request, caller).await,)
                }
                (["verify"], false) => {
                    methods!(request, POST => passkeys::verify_registration(request, caller).await,)
                }
                _ => Err(AuthError::RouteNotFound),
            }
        }
        [id, rest @ ..] => {
            let caller = bearer::require_user(request).await?;
            match rest {
                [] => methods!(request,
                    PATCH => passkeys::rename(request, caller, id).await,
                    DELETE => passkeys::delete(request, caller, id).await,
                ),
                _ => Err(AuthError::RouteNotFound),
            }
        }
    }
}

async fn user_routes(request: &Request, rest: &[&str], caller: bearer::Caller) -> AuthResult<HttpResponse> {
    match rest {
        [] => match *request.method() {
            Method::PUT => boxed(user::put(request, caller)).await,
            _ => Err(AuthError::MethodNotAllowed(vec![Method::GET, Method::PUT])),
        },
        ["oauth", "grants", rest @ ..] => {
            oauth_server::require_enabled(request)?;
            match rest {
                [] => methods!(request,
                    GET => oauth_server::list_grants(request, caller).await,
                    DELETE => oauth_server::revoke_grant(request, caller).await,
                ),
                _ => Err(AuthError::RouteNotFound),
            }
        }
        ["identities", rest @ ..] => {
            identities::require_enabled(request)?;
            match rest {
                ["authorize"] => methods!(request, GET => oauth::link(request, &caller).await,),
                [id] => methods!(request, DELETE => identities::unlink(request, caller, id).await,),
                _ => Err(AuthError::RouteNotFound),
            }
        }
        _ => Err(AuthError::RouteNotFound),
    }
}

async fn admin_routes(request: &Request, rest: &[&str], slash: bool, admin: bearer::Admin) -> AuthResult<HttpResponse> {
    match (rest, slash) {
        (["users"], _) => methods!(request,
            GET => admin::list_users(request, &admin).await,
            POST => admin::create_user(request, &admin).await,
        ),
        (["users", id, rest @ ..], _) => {
            let user = admin::load_user(request, id).await?;
            boxed(admin_user_routes(request, rest, admin, user)).await
        }
        (["generate_link"], false) => {
            methods!(request, POST => admin::generate_link(request, &admin).await,)
        }
        (["oauth", rest @ ..], slash) => {
            oauth_server::require_enabled(request)?;
            match rest {
                ["clients", rest @ ..] => boxed(admin_client_routes(request, rest, slash)).await,
                _ => Err(AuthError::RouteNotFound),
            }
        }
        (["custom-providers", rest @ ..], _) => {
            custom_providers::require_enabled(request)?;
            match rest {
                [] => methods!(request,
                    GET => custom_providers::list(request).await,
                    POST => custom_providers::create(request).await,
                ),
                [id] => {
                    let id = percent_encoding::percent_decode_str(id).decode_utf8_lossy();
                    methods!(request,
                        GET => custom_providers::get(request, &id).await,
                        PUT => custom_providers::update(request, &id).await,
                        DELETE => custom_providers::delete(request, &id).await,
                    )
                }
                _ => Err(AuthError::RouteNotFound),
            }
        }
        (["audit"], _) => methods!(request, GET => admin::audit_log(request).await,),
        (["sso", "providers", rest @ ..], _) => boxed(admin_sso_routes(request, rest)).await,
        _ => Err(AuthError::RouteNotFound),
    }
}

/// Upstream serves these whether SAML is on or off.
async fn admin_sso_routes(request: &Request, rest: &[&str]) -> AuthResult<HttpResponse> {
    use admin::sso;
    let [named, rest @ ..] = rest else {
        return methods!(request, GET => sso::list(request).await, POST => sso::create(request).await,);
    };
    let provider = sso::load(request, &percent_encoding::percent_decode_str(named).decode_utf8_lossy()).await?;
    match rest {
        [] => methods!(request,
            GET => sso::show(&provider),
            PUT => sso::update(request, &provider).await,
            DELETE => sso::delete(request, &provider).await,
        ),
        _ => Err(AuthError::RouteNotFound),
    }
}

async fn admin_user_routes(
    request: &Request,
    rest: &[&str],
    admin: bearer::Admin,
    user: crate::auth::models::user::User,
) -> AuthResult<HttpResponse> {
    match rest {
        [] => methods!(request,
            GET => crate::auth::door::request::ok(&user),
            PUT => admin::update_user(request, &admin, user).await,
            DELETE => admin::delete_user(request, &admin, user).await,
        ),
        ["factors"] => methods!(request, GET => admin::list_factors(&user).await,),
        ["factors", id, rest @ ..] => {
            let factor = mfa::load(request, user.id, id).await?;
            match rest {
                [] => methods!(request,
                    PUT => admin::update_factor(request, &admin, &user, factor).await,
                    DELETE => admin::delete_factor(request, &user, factor).await,
                ),
                _ => Err(AuthError::RouteNotFound),
            }
        }
        ["passkeys"] => methods!(request, GET => passkeys::list(request, user.id).await,),
        ["passkeys", id] => {
            methods!(request, DELETE => passkeys::delete_as_admin(request, admin.role(), user.id, id).await,)
        }
        _ => Err(AuthError::RouteNotFound),
    }
}
