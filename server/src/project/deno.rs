//! Finds Deno, for edge functions and for commands.

use std::path::{Path, PathBuf};

/// Looks in `tools/deno` of a folder around the current one or around this executable, then on PATH.
pub fn find_deno() -> Option<PathBuf> {
    let package = if cfg!(target_os = "macos") {
        format!("darwin-{}", if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" })
    } else {
        format!("linux-{}-glibc", if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" })
    };
    let package = Path::new("node_modules/@deno").join(package).join("deno");
    let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    let beside = starts
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors())
        .flat_map(|around| [around.join("tools/deno").join(&package), around.join(&package)])
        .find(|path| path.is_file());
    beside.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join("deno")).find(|file| file.is_file())
    })
}
