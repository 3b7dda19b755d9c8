//! Answers the three Docker API calls that the Supabase CLI makes before `status`, `start`, `db start` and `gen types` of the
//! local stack, via `DOCKER_HOST=unix://…`. Nothing can be created, stopped or changed through it.
//!
//! Reference: Docker Engine API 1.47, `GET /_ping`, `GET /containers/json`, `GET /containers/{id}/json`.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use anyhow::Context;
use serde_json::{Value, json};

/// The services of the CLI's stack that this process provides, as in the names of their containers.
const SERVICES: [&str; 8] = ["db", "kong", "auth", "rest", "realtime", "storage", "inbucket", "edge_runtime"];

const API_VERSION: &str = "1.47";

/// The socket; removed when dropped.
pub struct DockerSocket {
    path: PathBuf,
}

impl Drop for DockerSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Serves a socket at `path` for as long as this thread's system runs. Only this account may open it.
pub fn listen(project_id: &str, path: &Path) -> anyhow::Result<DockerSocket> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            anyhow::bail!("{} already exists and is not a socket", path.display())
        }
        Ok(_) if UnixStream::connect(path).is_ok() => anyhow::bail!("another program answers at {}", path.display()),
        // Left by a killed server.
        Ok(_) => std::fs::remove_file(path).with_context(|| format!("cannot replace {}", path.display()))?,
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).with_context(|| format!("cannot listen at {}", path.display()))?;
    let socket = DockerSocket { path: path.to_owned() };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    let stack = web::Data::new(Stack { project_id: project_id.to_owned() });
    let server = HttpServer::new(move || App::new().app_data(stack.clone()).default_service(web::to(answer)))
        .workers(1)
        .disable_signals()
        .listen_uds(listener)?
        .run();
    actix_web::rt::spawn(server);
    Ok(socket)
}

/// The containers that the CLI expects.
struct Stack {
    project_id: String,
}

impl Stack {
    fn names(&self) -> impl Iterator<Item = String> {
        SERVICES.iter().map(|service| format!("supabase_{service}_{}", self.project_id))
    }

    fn labels(&self) -> Value {
        json!({ "com.supabase.cli.project": self.project_id, "com.docker.compose.project": self.project_id })
    }

    fn listed(&self, name: &str) -> Value {
        json!({ "Id": name, "Names": [format!("/{name}")], "State": "running", "Status": "Up (healthy)", "Labels": self.labels() })
    }

    fn inspected(&self, name: &str) -> Value {
        json!({
            "Id": name,
            "Name": format!("/{name}"),
            "State": { "Status": "running", "Running": true, "Health": { "Status": "healthy" } },
            "Config": { "Labels": self.labels(), "Env": [] },
            "HostConfig": {},
            "Mounts": [],
            "NetworkSettings": { "Networks": {} },
        })
    }

    /// The answer to a path without its version; `None` if there is no such container.
    fn get(&self, path: &str) -> Option<Value> {
        if path == "/containers/json" {
            return Some(self.names().map(|name| self.listed(&name)).collect());
        }
        let name = path.strip_prefix("/containers/")?.strip_suffix("/json")?;
        self.names().any(|known| known == name).then(|| self.inspected(name))
    }
}

async fn answer(request: HttpRequest, stack: web::Data<Stack>) -> HttpResponse {
    let path = without_version(request.path());
    let is_read = matches!(request.method().as_str(), "GET" | "HEAD");
    let mut response = match (is_read, path, stack.get(path)) {
        (true, "/_ping", _) => HttpResponse::Ok().content_type("text/plain").body("OK"),
        (true, _, Some(found)) => HttpResponse::Ok().json(found),
        (true, _, None) => HttpResponse::NotFound()
            .json(json!({ "message": format!("there is no {path} here: this is Ferrobase, not Docker") })),
        (false, ..) => HttpResponse::NotImplemented().json(
            json!({ "message": "this is Ferrobase, not Docker: use the command of the same name of `ferrobase`" }),
        ),
    };
    let version = actix_web::http::header::HeaderValue::from_static(API_VERSION);
    response.headers_mut().insert(actix_web::http::header::HeaderName::from_static("api-version"), version);
    response
}

/// `/v1.47/containers/json` → `/containers/json`.
fn without_version(path: &str) -> &str {
    let rest = path.strip_prefix("/v").and_then(|rest| rest.split_once('/'));
    match rest {
        Some((version, _)) if version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            &path[version.len() + 2..]
        }
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_version_is_ignored() {
        for (path, meant) in [
            ("/v1.47/containers/json", "/containers/json"),
            ("/_ping", "/_ping"),
            ("/volumes/json", "/volumes/json"),
            ("/v1.47", "/v1.47"),
        ] {
            assert_eq!(without_version(path), meant);
        }
    }

    #[test]
    fn only_containers_of_this_project_exist() {
        let stack = Stack { project_id: "shop".to_owned() };
        assert_eq!(stack.get("/containers/json").expect("a list").as_array().map(Vec::len), Some(SERVICES.len()));
        let database = stack.get("/containers/supabase_db_shop/json").expect("the database");
        assert_eq!(database["State"]["Health"]["Status"], "healthy");
        assert_eq!(stack.get("/containers/supabase_db_other/json"), None);
        assert_eq!(stack.get("/images/json"), None);
    }
}
