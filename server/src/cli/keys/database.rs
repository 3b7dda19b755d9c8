//! Changes the passwords of the database. Users' sessions are rows in it, so none of them ends.

use std::path::Path;

use anyhow::{Context, bail};
use postgres_protocol::password::scram_sha_256;

use super::env_file::{EnvFile, Settings};
use super::random;
use crate::cli::database::block_on;
use crate::config::conninfo::{self, Conninfo};
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
    // Otherwise it is prepared already.
    let url = match file.value("DATABASE_URL") {
        Some(given) => Given { config: reached(&given, &source)?, text: given },
        None => Given { config: url.parse().context("DATABASE_URL")?, text: url },
    };
    external(&file, &url, &source)
}

/// `DATABASE_URL` as the file has it, and for the driver.
struct Given {
    text: String,
    config: tokio_postgres::Config,
}

/// A connection string of the file for the driver. Sets up the verification of the server's certificate.
fn reached(text: &str, source: &Source) -> anyhow::Result<tokio_postgres::Config> {
    let Conninfo { text, tls, .. } = Conninfo::resolve(text, source)
        .map_err(|error| anyhow::anyhow!("DATABASE_URL is not a PostgreSQL connection string: {error}"))?;
    db::install_tls(&tls).map_err(|error| anyhow::anyhow!("the way to the database: {error}"))?;
    text.parse().context("DATABASE_URL")
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
fn external(file: &EnvFile, given: &Given, source: &Source) -> anyhow::Result<()> {
    let url = given.text.as_str();
    // Not one of a password file, which would not be changed.
    let old = password_in(url)?.context("DATABASE_URL has no password")?;
    let new = random(24)?;
    let settings = settings(file, url, &old, &new)?;
    let next = file.with(&settings)?;
    ensure_logs_in_with(&next, url, &new)?;
    block_on(async {
        let client = match db::connect_client(&given.config).await {
            Ok(client) => client,
            Err(error) => return finish_interrupted(file, given, source, error).await,
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
    anyhow::ensure!(
        password_in(&url)?.as_deref() == Some(new),
        "the new password cannot be written to that file so that it counts; nothing was changed"
    );
    Ok(())
}

fn with_password(url: &str, password: &str) -> anyhow::Result<String> {
    conninfo::with_password(url, password).map_err(|error| anyhow::anyhow!("DATABASE_URL: {error}"))
}

fn password_in(url: &str) -> anyhow::Result<Option<String>> {
    conninfo::password_in(url).map_err(|error| anyhow::anyhow!("DATABASE_URL: {error}"))
}

/// The new settings: either the whole URL, or the password from which the URL is built.
fn settings(file: &EnvFile, url: &str, old: &str, new: &str) -> anyhow::Result<Settings> {
    let mut settings = Settings::new();
    if file.value("DATABASE_URL").is_some() {
        settings.push(("DATABASE_URL", with_password(url, new)?));
    }
    if file.value("POSTGRES_PASSWORD").is_some_and(|password| password == old) {
        settings.push(("POSTGRES_PASSWORD", new.to_owned()));
    }
    anyhow::ensure!(
        !settings.is_empty(),
        "that file contains neither DATABASE_URL nor its password as POSTGRES_PASSWORD"
    );
    Ok(settings)
}

/// If the password in the file is refused, tries the one that an interrupted change has staged.
async fn finish_interrupted(file: &EnvFile, given: &Given, source: &Source, error: OpenError) -> anyhow::Result<()> {
    let config = match EnvFile::open(&file.next()) {
        Ok(staged) => staged_login(&staged, given, source),
        Err(_) => None,
    };
    let holds = match config {
        Some(config) => db::connect_client(&config).await.is_ok(),
        None => false,
    };
    if !holds {
        return Err(anyhow::Error::new(error).context("the database"));
    }
    file.put_staged()
}

fn staged_login(staged: &EnvFile, given: &Given, source: &Source) -> Option<tokio_postgres::Config> {
    match staged.value("DATABASE_URL") {
        Some(url) => reached(&url, source).ok(),
        None => with_password(&given.text, &staged.value("POSTGRES_PASSWORD")?).ok()?.parse().ok(),
    }
}
