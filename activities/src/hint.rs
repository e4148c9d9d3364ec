//! What hints have in common.

use std::borrow::Cow;
use std::path::Path;

/// `path` as a word of a shell's command line, so that a command in a hint can be copied whatever the path holds.
#[must_use]
pub fn word(path: &Path) -> String {
    quoted(&path.display().to_string()).into_owned()
}

/// `text` as a word of a shell's command line.
#[must_use]
pub fn quoted(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+=,…".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for text in ["/srv/catalog", "", "a b", "d'é\"x", "$(x); rm", "new\nline", "*", "~", "back\\slash"] {
            let command = format!("printf %s {}", quoted(text));
            let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text, "{command}");
        }
        assert_eq!(word(Path::new("/srv/catalog")), "/srv/catalog");
    }
}
