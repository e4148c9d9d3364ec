//! Where the reference data is: `../shared` beside the project.

use std::path::PathBuf;

/// The path `inner` under `../shared`, or `None` on a clone without it, after saying that the test did not run.
/// With `CI=true` a missing file fails the test.
///
/// # Panics
/// With `CI=true`, when the file is missing.
pub fn shared(inner: &str) -> Option<PathBuf> {
    let mut folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    loop {
        let candidate = folder.join("shared").join(inner);
        if candidate.exists() {
            return Some(candidate);
        }
        if !folder.pop() {
            break;
        }
    }
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "CI needs ../shared/{inner}, and it is missing");
    println!("did not run: ../shared/{inner} is not here");
    None
}
