//! `storage ls|cp|mv|rm`: the objects of the project's storage, or of another one's, addressed as `ss:///bucket/path`. Reference:
//! supabase/cli `internal/storage`.

mod client;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::json;

use super::running::Place;
use super::{ask, open, say, settings};
use crate::gateway::ApiKeys;
use crate::project::Project;

use client::Refusal;
pub use client::{Client, Kept};

const SCHEME: &str = "ss://";

#[derive(Args)]
pub struct StoreArgs {
    /// This folder's project, the default
    #[arg(long, conflicts_with_all = ["url", "linked"])]
    local: bool,
    /// Another project, by the address of its API
    #[arg(long, value_name = "URL", requires = "service_key", conflicts_with = "linked")]
    url: Option<String>,
    /// Its service_role or secret key
    #[arg(long, value_name = "KEY", env = "FERROBASE_SERVICE_KEY", hide_env_values = true)]
    service_key: Option<String>,
    /// There are no linked projects here
    #[arg(long, hide = true)]
    linked: bool,
}

#[derive(Args)]
pub struct ListArgs {
    /// What to list, such as ss:///bucket/docs
    #[arg(default_value = "ss:///")]
    path: String,
    /// Also what is in folders
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Args)]
pub struct CopyArgs {
    /// A file or folder, or ss:///bucket/path
    src: String,
    /// ss:///bucket/path, or a file or folder
    dst: String,
    /// A folder with everything in it
    #[arg(short, long)]
    recursive: bool,
    /// Cache-Control of what is uploaded
    #[arg(long, default_value = "max-age=3600")]
    cache_control: String,
    /// Content-Type of what is uploaded [default: by the file's name]
    #[arg(long)]
    content_type: Option<String>,
    /// How many files at a time
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Args)]
pub struct MoveArgs {
    /// ss:///bucket/path
    src: String,
    /// Another path in the same bucket
    dst: String,
    /// A folder with everything in it
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Args)]
pub struct RemoveArgs {
    /// What to delete, such as ss:///bucket/docs/readme.md
    files: Vec<String>,
    /// Also folders and buckets; without a path, all buckets
    #[arg(short, long)]
    recursive: bool,
    /// Do not ask
    #[arg(long, env = "SUPABASE_YES", hide_env = true)]
    yes: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl StoreArgs {
    fn open(&self) -> anyhow::Result<Opened> {
        anyhow::ensure!(!self.linked, "there is no linked project: pass its URL with --url");
        if let (Some(url), Some(key)) = (&self.url, &self.service_key) {
            return Ok(Opened { client: Client::new(url, key)?, project: None });
        }
        let project = open()?;
        Place::of(&project).require_running()?;
        let (_, settings) = settings(&project)?;
        let keys = ApiKeys::from_config(&settings.server);
        let client = Client::new(&format!("http://{}", settings.server.listen), keys.service_role())?;
        Ok(Opened { client, project: Some(project) })
    }
}

struct Opened {
    client: Client,
    /// Declares buckets.
    project: Option<Project>,
}

fn on_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    actix_web::rt::System::new().block_on(work)
}

pub fn list(args: &ListArgs) -> anyhow::Result<()> {
    let path = Remote::parse(&args.path)?;
    let opened = args.store.open()?;
    let names = on_runtime(async {
        match args.recursive {
            true => below(&opened.client, &path).await,
            false => entries(&opened.client, &path.0).await,
        }
    })?;
    crate::cli::print_all(&names.iter().map(|name| format!("{name}\n")).collect::<String>())
}

pub fn copy(args: &CopyArgs) -> anyhow::Result<()> {
    let is_remote = |text: &str| text.get(..SCHEME.len()).is_some_and(|head| head.eq_ignore_ascii_case(SCHEME));
    match (is_remote(&args.src), is_remote(&args.dst)) {
        (true, true) => anyhow::bail!("Copying between buckets is not supported"),
        (false, false) => anyhow::bail!("one of the two must be a URL such as ss:///bucket/path"),
        (true, false) => {
            let (from, to) = (Remote::parse(&args.src)?, PathBuf::from(&args.dst));
            let opened = args.store.open()?;
            on_runtime(async {
                match args.recursive {
                    true => download_all(&opened.client, &from, &to, args.jobs).await,
                    false => {
                        // A folder takes the object under its own name.
                        let name = from.0.rsplit('/').next().unwrap_or_default();
                        let to = if to.is_dir() { to.join(name) } else { to };
                        opened.client.download(&from.0, &to, false).await
                    }
                }
            })
        }
        (false, true) => {
            let (from, to) = (PathBuf::from(&args.src), Remote::parse(&args.dst)?);
            let opened = args.store.open()?;
            let kept = Kept {
                cache_control: Some(&args.cache_control),
                content_type: args.content_type.as_deref(),
                overwrites: args.recursive,
            };
            on_runtime(async {
                match args.recursive {
                    true => upload_all(&opened, &from, &to, &kept, args.jobs).await,
                    false => opened.client.upload(&from, &to.0, &kept).await,
                }
            })
        }
    }
}

pub fn rename(args: &MoveArgs) -> anyhow::Result<()> {
    let (from, to) = (Remote::parse(&args.src)?, Remote::parse(&args.dst)?);
    let ((bucket, source), (other, target)) = (from.split(), to.split());
    anyhow::ensure!(!source.is_empty() || !target.is_empty(), "You must specify an object path");
    anyhow::ensure!(bucket == other, "Moving between buckets is unsupported");
    let opened = args.store.open()?;
    on_runtime(async {
        say(&format!("Moving object: {} => {}", from.0, to.0));
        match opened.client.rename(bucket, source, target).await {
            Ok(told) => {
                say(&told);
                Ok(())
            }
            Err(error) if args.recursive && is_absent(&error) => {
                let folder = format!("{}/", from.0.trim_end_matches('/'));
                // Listed first, because moving changes the pages of a listing.
                let found = below(&opened.client, &Remote(folder.clone())).await?;
                let objects: Vec<&String> = found.iter().filter(|path| !path.ends_with('/')).collect();
                anyhow::ensure!(!objects.is_empty(), "Object not found: {folder}");
                for path in objects {
                    let rest =
                        path.trim_start_matches('/').strip_prefix(folder.trim_start_matches('/')).unwrap_or(path);
                    let place = joined(target, rest);
                    say(&format!("Moving object: {path} => /{bucket}/{place}"));
                    let object = Remote(path.clone());
                    opened.client.rename(bucket, object.split().1, &place).await?;
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    })
}

pub fn remove(args: &RemoveArgs) -> anyhow::Result<()> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &args.files {
        let path = Remote::parse(file)?;
        let (bucket, name) = path.split();
        anyhow::ensure!(!bucket.is_empty(), "You must specify a bucket to delete.");
        anyhow::ensure!(args.recursive || !is_folder(name), "You must specify -r flag to delete directories.");
        groups.entry(bucket.to_owned()).or_default().push(name.to_owned());
    }
    anyhow::ensure!(args.recursive || !groups.is_empty(), "You must specify -r flag to delete directories.");
    let opened = args.store.open()?;
    on_runtime(async {
        if groups.is_empty() {
            groups = opened.client.buckets().await?.into_iter().map(|bucket| (bucket, vec![String::new()])).collect();
        }
        for (bucket, names) in &groups {
            say(&format!("Confirm deleting files in bucket {bucket}?"));
            if !args.yes && !ask::answers_yes()? {
                say("Nothing was deleted.");
                continue;
            }
            say(&format!("Deleting objects: {}", names.join(" ")));
            let removed = opened.client.delete(bucket, names).await?;
            for name in names.iter().filter(|name| !removed.contains(name)) {
                if args.recursive {
                    remove_folder(&opened.client, bucket, name).await?;
                } else {
                    say(&format!("Object not found: {name}"));
                }
            }
        }
        Ok(())
    })
}

/// Deletes all objects in a folder, and the bucket if `name` is empty.
async fn remove_folder(client: &Client, bucket: &str, name: &str) -> anyhow::Result<()> {
    let folder = if name.is_empty() { String::new() } else { format!("{}/", name.trim_end_matches('/')) };
    let found = below(client, &Remote(format!("/{bucket}/{folder}"))).await?;
    let objects = found.iter().map(|path| Remote(path.clone()).split().1.to_owned());
    let objects: Vec<String> = objects.filter(|name| !is_folder(name)).collect();
    anyhow::ensure!(!objects.is_empty() || folder.is_empty(), "Object not found: {bucket}/{folder}");
    for some in objects.chunks(1000) {
        say(&format!("Deleting objects: {}", some.join(" ")));
        client.delete(bucket, some).await?;
    }
    if folder.is_empty() {
        say(&format!("Deleting bucket: {bucket}"));
        match client.delete_bucket(bucket).await {
            Ok(told) => say(&told),
            Err(error) if refusal(&error) == "Bucket not found" => say(&format!("Bucket not found: {bucket}")),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn download_all(client: &Client, from: &Remote, to: &Path, jobs: u8) -> anyhow::Result<()> {
    let name = from.0.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let to = if to.is_dir() { to.join(name) } else { to.to_owned() };
    let found = below(client, from).await?;
    anyhow::ensure!(!found.is_empty(), "Object not found: {}", from.0);
    let one = |path: String| {
        let to = &to;
        async move {
            let place = place_of(path.strip_prefix(&from.0).unwrap_or(&path), to)?;
            say(&format!("Downloading: {path} => {}", place.display()));
            let folder = if path.ends_with('/') { Some(place.as_path()) } else { place.parent() };
            if let Some(folder) = folder {
                let made = tokio::fs::create_dir_all(folder).await;
                made.with_context(|| format!("cannot create {}", folder.display()))?;
            }
            if path.ends_with('/') { Ok(()) } else { client.download(&path, &place, true).await }
        }
    };
    stream::iter(found).map(one).buffer_unordered(jobs.into()).try_collect().await
}

/// Where an object goes below a folder of this machine. An object's name must not lead out of it.
fn place_of(name: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let mut place = folder.to_owned();
    for part in name.split('/').filter(|part| !part.is_empty()) {
        anyhow::ensure!(part != ".." && part != "." && !part.contains('\0'), "the object {name} cannot be a file here");
        place.push(part);
    }
    Ok(place)
}

async fn upload_all(opened: &Opened, from: &Path, to: &Remote, kept: &Kept<'_>, jobs: u8) -> anyhow::Result<()> {
    let bare = to.0.trim_end_matches('/');
    let last = bare.rsplit('/').next().unwrap_or_default();
    let known = if bare.is_empty() { Vec::new() } else { entries(&opened.client, bare).await? };
    let has_folder = known.iter().any(|name| name.strip_suffix('/') == Some(last));
    let has_object = known.iter().any(|name| name == last);
    let mut files = Vec::new();
    if from.is_file() {
        let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let into = is_folder(to.split().1) || (has_folder && !has_object);
        files.push((from.to_owned(), if into { joined(&to.0, &name) } else { to.0.clone() }));
    } else {
        let whole = std::fs::canonicalize(from).with_context(|| format!("cannot read {}", from.display()))?;
        // A folder goes into one that is there, under its own name; `.` has none.
        let own = match from.file_name() {
            Some(name) if has_folder || bare.is_empty() => name.to_string_lossy().into_owned(),
            _ => String::new(),
        };
        for (key, path) in crate::project::files_below(&whole) {
            files.push((path, joined(&joined(bare, &own), &key)));
        }
    }
    let one = |(path, key): (PathBuf, String)| async move {
        say(&format!("Uploading: {} => {key}", path.display()));
        match opened.client.upload(&path, &key, kept).await {
            Err(error) if refusal(&error) == "Bucket not found" => {
                let object = Remote(key.clone());
                opened.declare(object.split().0).await?;
                opened.client.upload(&path, &key, kept).await
            }
            outcome => outcome,
        }
    };
    stream::iter(files).map(one).buffer_unordered(jobs.into()).try_collect().await
}

impl Opened {
    /// Makes a bucket as the configuration declares it.
    async fn declare(&self, name: &str) -> anyhow::Result<()> {
        let declared = self.project.iter().flat_map(Project::buckets).find(|bucket| bucket.name == name);
        let body = match declared {
            Some(bucket) => json!({
                "name": name, "public": bucket.public, "file_size_limit": bucket.file_size_limit,
                "allowed_mime_types": bucket.allowed_mime_types,
            }),
            None => json!({ "name": name }),
        };
        match self.client.create_bucket(&body).await {
            // By another upload of this command.
            Err(error) if refusal(&error) == "Duplicate" => Ok(()),
            outcome => outcome,
        }
    }
}

/// What is directly at a path: buckets, or objects and folders whose names begin with its last part.
async fn entries(client: &Client, path: &str) -> anyhow::Result<Vec<String>> {
    let remote = Remote(path.to_owned());
    let (bucket, name) = remote.split();
    if bucket.is_empty() || (name.is_empty() && !path.ends_with('/')) {
        let buckets = client.buckets().await?.into_iter().filter(|found| found.starts_with(bucket));
        return Ok(buckets.map(|found| found + "/").collect());
    }
    client.list(bucket, name).await
}

/// The paths of all objects below a path, and of empty buckets.
async fn below(client: &Client, path: &Remote) -> anyhow::Result<Vec<String>> {
    let base = path.0.rfind('/').map_or("", |slash| &path.0[..=slash]);
    let (mut found, mut folders) = (Vec::new(), VecDeque::new());
    let sort = |base: &str, names: Vec<String>, found: &mut Vec<String>| {
        let mut deeper = Vec::new();
        for name in names {
            let path = format!("{base}{name}");
            if name.ends_with('/') { deeper.push(path) } else { found.push(path) }
        }
        deeper
    };
    folders.extend(sort(base, entries(client, &path.0).await?, &mut found));
    while let Some(folder) = folders.pop_front() {
        let names = entries(client, &folder).await?;
        if names.is_empty() && Remote(folder.clone()).split().1.is_empty() {
            found.push(folder.clone());
        }
        folders.extend(sort(&folder, names, &mut found));
    }
    Ok(found)
}

/// A path in the storage, with its slash in front: `/bucket/folder/object`.
struct Remote(String);

impl Remote {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let (scheme, path) = text.split_at_checked(SCHEME.len()).unwrap_or((text, ""));
        anyhow::ensure!(
            scheme.eq_ignore_ascii_case(SCHEME) && path.starts_with('/'),
            "URL must match pattern ss:///bucket/[prefix]"
        );
        Ok(Self(path.to_owned()))
    }

    /// The bucket, and the name in it.
    fn split(&self) -> (&str, &str) {
        let path = self.0.strip_prefix('/').unwrap_or(&self.0);
        path.split_once('/').unwrap_or((path, ""))
    }
}

fn is_folder(name: &str) -> bool {
    name.is_empty() || name.ends_with('/')
}

fn joined(folder: &str, name: &str) -> String {
    match (folder.trim_end_matches('/'), name) {
        ("", name) if folder.is_empty() => name.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}

/// The API's word for a refusal; empty for other errors.
fn refusal(error: &anyhow::Error) -> &str {
    error.downcast_ref::<Refusal>().map_or("", |refusal| refusal.error.as_str())
}

fn is_absent(error: &anyhow::Error) -> bool {
    ["not_found", "Not found"].contains(&refusal(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_urls_have_three_slashes() {
        let split =
            |text: &str| Remote::parse(text).map(|path| (path.split().0.to_owned(), path.split().1.to_owned())).ok();
        let pair = |bucket: &str, name: &str| Some((bucket.to_owned(), name.to_owned()));
        for (text, wanted) in [
            ("ss:///", pair("", "")),
            ("SS:///bucket", pair("bucket", "")),
            ("ss:///bucket/", pair("bucket", "")),
            ("ss:///bucket/a/b c.txt", pair("bucket", "a/b c.txt")),
            ("ss://bucket/a", None),
            ("ss:/bucket", None),
            ("s3:///bucket", None),
            ("", None),
        ] {
            assert_eq!(split(text), wanted, "{text}");
        }
    }

    #[test]
    fn an_object_does_not_leave_the_folder() {
        let place = |name: &str| place_of(name, Path::new("/here")).ok();
        assert_eq!(place("/a//b.txt"), Some(PathBuf::from("/here/a/b.txt")));
        for name in ["../b", "a/../../b", ".."] {
            assert_eq!(place(name), None, "{name}");
        }
    }
}
