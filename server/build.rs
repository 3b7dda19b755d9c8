//! Folders compiled into the binary: a new file in them makes a new build. A debug build reads them when it runs.

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile != "debug") {
        for folder in ["../frontend/dist", "../sql"] {
            println!("cargo:rerun-if-changed={folder}");
        }
    }
    // Held while the web app is built beside the libraries (tools/build.sh).
    if let Some(lock) = std::env::var_os("FERROBASE_WEB_LOCK") {
        std::fs::File::open(lock)?.lock_shared()?;
    }
    Ok(())
}
