//! Changes the passwords of the database. Users' sessions are rows in it, so none of them ends.

use std::path::Path;

use anyhow::{Context, bail};
use postgres_protocol::password::scram_sha_256;
use url::Url;

use super::env_file::{EnvFile, Settings};
use super::random;
use crate::cli::database::block_on;
use crate::config::{Reader, Source};
use crate::db::{self, OpenError};
use crate::embedded_pg;

pub fn rotate(file: Option<&Path>, source: &Source) -> anyhow::Result<()> {
    let file = file.map(EnvFile::open).transpose()?;
    let source = file.as_ref().map_or_else(|| source.clone(), |file| file.over(source));
    let mut reader = Reader::new(&source);
    if reader.find(&["DATABASE_URL"]).is_none() {
        return embedded(&mut reader);
    }
    let url = reader.text_or(&["DATABASE_URL"], "");
    let Some(file) = file else {
        bail!(
            "pass --write FILE with the file that contains DATABASE_URL or POSTGRES_PASSWORD, so that the new password is not lost"
        );
    };
    external(&file, &url)
}

/// The passwords are in files of the data folder, and the server itself changes them.
fn embedded(reader: &mut Reader<'_>) -> anyhow::Result<()> {
    anyhow::ensure!(
        !reader.flag(&["FERROBASE_DEV"], false),
        "in development the database passwords are the well-known ones"
    );
    let data_dir = reader.text_or(&["FERROBASE_DATA_DIR"], ".ferrobase");
    embedded_pg::change_passwords_at_next_start(Path::new(&data_dir))?;
    crate::cli::print_all("the server's next start sets new database passwords\n")
}

/// The owner's password is in the settings. The passwords of the server's own roles are derived from it.
fn external(file: &EnvFile, url: &str) -> anyhow::Result<()> {
    let config: tokio_postgres::Config = url.parse().context("DATABASE_URL")?;
    let old = config.get_password().context("DATABASE_URL has no password")?;
    let new = random(24)?;
    let settings = settings(file, url, old, &new)?;
    let next = file.with(&settings)?;
    ensure_logs_in_with(&next, url, &new)?;
    block_on(async {
        let client = match db::connect_client(&url.parse()?).await {
            Ok(client) => client,
            Err(error) => return finish_interrupted(file, url, error).await,
        };
        // Written to disk before the password changes. If the process is killed in between, one of the two files holds the valid
        // password.
        next.stage()?;
        // Only the SCRAM verifier is sent, so no log can contain the password.
        let change = format!("alter role current_user password '{}'", scram_sha_256(new.as_bytes()));
        client.batch_execute(&change).await.context("the database's password was not changed")?;
        drop(client);
        next.put_staged()
    })?;
    crate::cli::print_all(
        "the owner's password was changed. Start all servers with these settings: those that run keep working until the first \
         of them is started anew, which changes the passwords of the server's own roles\n",
    )
}

/// Refuses settings with which the server would not log in with the new password, before anything has changed. Both the URL and
/// `POSTGRES_PASSWORD` may be in the file, and a variable may be set twice.
fn ensure_logs_in_with(next: &EnvFile, url: &str, new: &str) -> anyhow::Result<()> {
    let url = match next.value("DATABASE_URL") {
        Some(url) => url,
        None => with_password(url, &next.value("POSTGRES_PASSWORD").unwrap_or_default())?,
    };
    let config: tokio_postgres::Config = url.parse().context("DATABASE_URL with the new password")?;
    anyhow::ensure!(
        config.get_password() == Some(new.as_bytes()),
        "the new password cannot be written to that file so that it counts; nothing was changed"
    );
    Ok(())
}

fn with_password(url: &str, password: &str) -> anyhow::Result<String> {
    let url =
        Url::parse(url).context("DATABASE_URL is not a URL (postgresql://…), so its password cannot be replaced")?;
    Ok(crate::cli::password::replace(&url, password).to_string())
}

/// The new settings: either the whole URL, or the password from which the URL is built.
fn settings(file: &EnvFile, url: &str, old: &[u8], new: &str) -> anyhow::Result<Settings> {
    let mut settings = Settings::new();
    if file.value("DATABASE_URL").is_some() {
        settings.push(("DATABASE_URL", with_password(url, new)?));
    }
    if file.value("POSTGRES_PASSWORD").is_some_and(|password| password.as_bytes() == old) {
        settings.push(("POSTGRES_PASSWORD", new.to_owned()));
    }
    anyhow::ensure!(
        !settings.is_empty(),
        "that file contains neither DATABASE_URL nor its password as POSTGRES_PASSWORD"
    );
    Ok(settings)
}

/// If the password in the file is refused, tries the one that an interrupted change has staged.
async fn finish_interrupted(file: &EnvFile, url: &str, error: OpenError) -> anyhow::Result<()> {
    let staged = EnvFile::open(&file.next()).ok();
    let staged_url = staged.and_then(|staged| match staged.value("DATABASE_URL") {
        Some(url) => Some(url),
        None => with_password(url, &staged.value("POSTGRES_PASSWORD")?).ok(),
    });
    let holds = match staged_url.as_deref().map(str::parse) {
        Some(Ok(config)) => db::connect_client(&config).await.is_ok(),
        _ => false,
    };
    if !holds {
        return Err(anyhow::Error::new(error).context("the database"));
    }
    file.put_staged()
}
