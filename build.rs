//! Tells the linker where the prebuilt DuckDB is, and the binary where to look for it and its extensions.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-env-changed=DUCKDB_LIB_DIR");
    let Some(folder) = env::var_os("DUCKDB_LIB_DIR").map(PathBuf::from) else { return };
    let folder = folder.canonicalize().unwrap_or(folder);
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    // An installed binary finds the library beside itself.
    let origin = if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "macos") { "@loader_path" } else { "$ORIGIN" };
    println!("cargo:rustc-link-arg=-Wl,-rpath,{origin}");
}
