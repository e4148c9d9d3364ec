//! Named points at which a test ends the process, to show what a crash there leaves behind.
//!
//! A point costs one load unless a hook is installed, and only a binary built with `crash-points` installs one.

use std::sync::OnceLock;

static HOOK: OnceLock<fn(&str)> = OnceLock::new();

/// Installs what runs at every point. The first call wins; later ones change nothing.
pub fn install(hook: fn(&str)) {
    let _ = HOOK.set(hook);
}

/// Runs the installed hook, if any, with the name of this point.
pub fn point(name: &str) {
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
}
