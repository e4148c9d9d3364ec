//! Why a person does what they do: taken from `--reason`, or asked for.

use std::io::{IsTerminal as _, Write as _};

use crate::exit::Ended;
use crate::output::Output;

/// The reason that was given; asked for where a person sits at a terminal.
///
/// # Errors
/// A usage error where there is none and nobody to ask.
pub fn reason(out: Output, given: Option<String>) -> Result<String, Ended> {
    let missing = || {
        Ended::usage("a reason is missing; the audit trail keeps who did what and why")
            .with_hint("give it with --reason TEXT")
    };
    let text = match given {
        Some(text) => text,
        None if out.is_terminal() && std::io::stdin().is_terminal() => {
            let mut stderr = std::io::stderr().lock();
            let _ = write!(stderr, "reason: ").and_then(|()| stderr.flush());
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map_err(|_| missing())?;
            line
        }
        None => return Err(missing()),
    };
    let text = text.trim();
    // As a hint has it, for a person to write in.
    if text.is_empty() || text == "…" { Err(missing()) } else { Ok(text.to_owned()) }
}
