//! The authentication API, compatible with Supabase Auth (GoTrue).
//!
//! A request enters through [`routes`], which lists paths, methods and guards, and goes through five rooms: [`door`] identifies
//! the caller and limits requests, [`flows`] has a file per flow, [`credentials`] makes and checks passwords, codes and tokens,
//! [`outside`] calls other services, [`models`] are the rows of schema `auth` and the access to them. [`error`] renders every
//! failure. Behaviour: supabase/auth 2.19x. Deliberate differences are noted in the code.

mod credentials;
mod door;
mod error;
pub mod flows;
mod models;
mod outside;
mod routes;

use std::sync::Arc;

use actix_web::web::{self, ServiceConfig};
use url::Url;

pub use models::cleanup::keep_clean;
pub use models::store::pool;
pub use outside::mailer::Delivery;

use crate::config::{AuthConfig, TrustedProxies};
use crate::db::Pool;
use crate::jwt::sign::SigningKeys;
use crate::outgoing;
use credentials::otp::CodeHasher;
use credentials::password::{Hasher, PasswordRules};
use door::guesses::Guesses;
use door::limits::Limits;
use door::redirect::RedirectPolicy;
use flows::{oauth, token};
use outside::mailer::TemplateStore;
use outside::outbound::{self, Outbound};
use outside::pace::Paces;
use outside::sms::{self, Texts};

/// The part of a request's time that it may wait for its password to be hashed. The rest is for hashing and answering.
const WAIT_FOR_HASHING: f64 = 0.6;
/// How many requests a hook's answer may take, redirects included.
const MOST_REDIRECTS: usize = 10;

/// Everything the API needs to serve requests. Shared by all workers.
pub struct Auth {
    config: Arc<AuthConfig>,
    /// Connections that act as `supabase_auth_admin`.
    pool: Pool,
    keys: SigningKeys,
    external_url: Url,
    /// Where the API is mounted, without a trailing slash: `""` or `/auth/v1`.
    mount: String,
    redirects: RedirectPolicy,
    limits: Limits,
    hasher: Hasher,
    code_hasher: CodeHasher,
    guesses: Guesses,
    password_rules: PasswordRules,
    templates: TemplateStore,
    delivery: Delivery,
    texts: Option<Texts>,
    paces: Paces,
    /// For captchas.
    http: reqwest::Client,
    hooks: reqwest::Client,
    /// For the providers of the settings.
    providers: Outbound,
    /// For providers that administrators enter.
    custom_providers: Outbound,
    /// OpenID Connect issuers that were asked for.
    discovery: oauth::Discovery,
    trusted_proxies: TrustedProxies,
    refreshes: token::Turns,
    rotations: token::Rotations,
}

/// Redirects of hooks are followed as by Supabase Auth, but not from HTTPS to HTTP: hooks are told about people.
fn hooks_redirects() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|redirect| {
        let was_secret = redirect.previous().last().is_some_and(|url| url.scheme() == "https");
        if was_secret && redirect.url().scheme() != "https" {
            redirect.stop()
        } else if redirect.previous().len() >= MOST_REDIRECTS {
            redirect.error("too many redirects")
        } else {
            redirect.follow()
        }
    })
}

impl Auth {
    /// Forgets all data about users, when the database has been replaced.
    pub fn forget(&self) {
        self.limits.forget();
    }

    /// Builds the state, reads the mail templates, and refuses invalid settings.
    ///
    /// `pool` logs in as `supabase_auth_admin`. `mount` is where [`configure`] is called: `""` or `/auth/v1`.
    pub async fn new(
        config: AuthConfig,
        pool: Pool,
        delivery: Delivery,
        mount: &str,
        trusted_proxies: TrustedProxies,
    ) -> anyhow::Result<Self> {
        for (name, is_on) in
            [("GOTRUE_SAML_ENABLED", config.saml_enabled), ("GOTRUE_EXPERIMENTAL_SCIM_ENABLED", config.scim_enabled)]
        {
            if is_on {
                tracing::warn!(setting = name, "this is not served: its paths answer as if it were off");
            }
        }
        oauth::warn_of_open_issuers(&config.external);
        let config = Arc::new(config);
        let jwt = &config.jwt;
        let keys = SigningKeys::new(&jwt.secret, &jwt.key_id, jwt.keys.as_ref(), jwt.valid_methods.as_deref())
            .map_err(|error| anyhow::anyhow!("GOTRUE_JWT_KEYS: {error}"))?
            .accepting(&jwt.accepted);
        let http = outgoing::client().redirect(reqwest::redirect::Policy::none()).build()?;
        let hooks = outgoing::client().redirect(hooks_redirects()).build()?;
        let authorities = match &config.outbound_ca_file {
            Some(file) => outbound::authorities(file)
                .map_err(|error| anyhow::anyhow!("FERROBASE_OUTBOUND_CA_FILE {}: {error}", file.display()))?,
            None => Vec::new(),
        };
        let custom_providers = Outbound::guarded(config.outbound_allow.clone(), &authorities)?;
        let external_url =
            Url::parse(&config.external_url).map_err(|_| anyhow::anyhow!("API_EXTERNAL_URL must be a URL"))?;
        Ok(Self {
            rotations: token::Rotations::new(&pool)?,
            keys,
            external_url,
            mount: mount.trim_end_matches('/').to_owned(),
            redirects: RedirectPolicy::new(&config.site_url, &config.uri_allow_list),
            limits: Limits::new(&config.rate_limits, config.mode, &pool)?,
            hasher: Hasher::new(
                config.password.threads,
                config.password.cost,
                config.max_request_duration.mul_f64(WAIT_FOR_HASHING),
                pool.refuses_under_overload(),
            )?,
            code_hasher: CodeHasher::new(&config.jwt.secret).accepting(&config.jwt.accepted),
            guesses: Guesses::new(&config.guesses),
            password_rules: PasswordRules::new(&config.password)?,
            templates: TemplateStore::load(Arc::clone(&config)).await?,
            paces: Paces::default(),
            texts: sms::sender(&config.sms, http.clone()),
            discovery: oauth::Discovery::new(config.external.discovery_urls.clone()),
            config,
            pool,
            delivery,
            providers: Outbound::anywhere(&authorities)?,
            http,
            hooks,
            custom_providers,
            trusted_proxies,
            refreshes: token::Turns::default(),
        })
    }

    /// The API's connections.
    pub fn connections(&self) -> &Pool {
        &self.pool
    }

    pub fn trusted_proxies(&self) -> &TrustedProxies {
        &self.trusted_proxies
    }

    /// The number of password comparisons since the start, for tests of enumeration.
    pub fn password_verifications(&self) -> u64 {
        self.hasher.verifications()
    }

    /// Providers whose accounts are never linked by e-mail address.
    fn own_linking_domains(&self) -> Vec<&str> {
        self.config.provider_linking_domains.keys().map(String::as_str).collect()
    }
}

/// Serves the API for every path below the scope (or the application) that `service` configures.
pub fn configure(auth: Arc<Auth>, service: &mut ServiceConfig) {
    service.app_data(web::Data::from(auth)).default_service(web::to(routes::handle));
}
