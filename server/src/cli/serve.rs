//! `serve`: configuration, database, states, listeners, and a graceful end.

use clap::Args;

use crate::config::{Api, Reader, ServerConfig, Source};

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Start just these APIs, comma-separated; 'rest' or 'auth' alone is a drop-in at '/'
    #[arg(long, value_delimiter = ',', value_name = "API")]
    only: Vec<Api>,
}

pub fn run(args: ServeArgs, mut source: Source) -> anyhow::Result<()> {
    crate::telemetry::init("info", source.get("FERROBASE_LOG_FORMAT") == Some("json"));
    match args.only.as_slice() {
        [] => {
            let mut reader = Reader::new(&source);
            let config = ServerConfig::read(&mut reader);
            let config = reader.finish(config)?;
            if config.development {
                development_defaults(&mut source, &config);
            }
            anyhow::bail!("the full server is not wired yet")
        }
        _ => anyhow::bail!("--only is not wired yet"),
    }
}

/// What `up` sets besides `FERROBASE_DEV`: the settings of `supabase start` and AidBridge's password rule.
fn development_defaults(source: &mut Source, config: &ServerConfig) {
    for (name, value) in [
        ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
        ("GOTRUE_SMTP_MAX_FREQUENCY", "1s"),
        ("GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL", "10"),
        ("GOTRUE_PASSWORD_MIN_LENGTH", "8"),
        ("GOTRUE_RATE_LIMIT_EMAIL_SENT", "1000"),
        ("GOTRUE_RATE_LIMIT_VERIFY", "1000"),
        ("GOTRUE_RATE_LIMIT_TOKEN_REFRESH", "1000"),
        ("GOTRUE_RATE_LIMIT_ANONYMOUS_USERS", "1000"),
        ("GOTRUE_RATE_LIMIT_OTP", "1000"),
        ("PGRST_DB_SCHEMAS", "public,graphql_public"),
        ("PGRST_DB_EXTRA_SEARCH_PATH", "public,extensions"),
        ("PGRST_DB_MAX_ROWS", "1000"),
    ] {
        source.set_default(name, value);
    }
    source.set_default("GOTRUE_SITE_URL", config.site_url.clone());
}
