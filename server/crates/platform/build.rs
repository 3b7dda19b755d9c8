//! A folder compiled into the binary: a new file in it makes a new build. A debug build reads it when it runs.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile != "debug") {
        println!("cargo:rerun-if-changed=../../../sql");
    }
}
