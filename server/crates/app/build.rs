//! The web app, which is compiled into the binary: a new file in it makes a new build. A debug build reads it when it runs.

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile != "debug") {
        println!("cargo:rerun-if-changed=../../../frontend/dist");
    }
    // Held while the web app is built beside the libraries (tools/build.sh).
    if let Some(lock) = std::env::var_os("FERROBASE_WEB_LOCK") {
        std::fs::File::open(lock)?.lock_shared()?;
    }
    Ok(())
}
