//! Folders compiled into the binary: a new file in them makes a new build.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for folder in ["../frontend/dist", "../sql"] {
        println!("cargo:rerun-if-changed={folder}");
    }
}
