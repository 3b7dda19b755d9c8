//! Settings that the web app reads at run time, so that rotating keys needs no rebuild.

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use serde::Serialize;

/// The body of `GET /app-config.json`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppSettings {
    /// Base of the API; empty means the app's own origin.
    pub api_url: String,
    /// The public key the browser sends: the anon JWT or an `sb_publishable_…` key.
    pub publishable_key: String,
    pub support_email: String,
    /// The app's URL, for the content security policy only.
    #[serde(skip)]
    pub site_url: String,
    pub site_name: String,
    pub providers: Providers,
    /// Whether a sign-up gives a session at once.
    pub autoconfirm: bool,
    /// Whether texts can be sent.
    pub sms: bool,
}

/// Third-party sign-in that the server has configured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Providers {
    pub google: bool,
    pub azure: bool,
}

pub(super) async fn app_config(settings: web::Data<AppSettings>) -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-cache")).json(settings.get_ref())
}
