//! What the engine refuses to hold, each with its reason.

/// The largest input or output of a step or a run, in bytes of JSON: 1 MiB. The journal is read whole when a run is
/// resumed and is kept for months; what is larger goes to a file or an object, and the journal holds its digest.
pub const PAYLOAD_LIMIT_BYTES: usize = 1024 * 1024;

/// The most attempts that a retry policy can ask for: 1,000. A step that failed as often has a cause that waiting does
/// not mend, and each attempt leaves a row.
pub const ATTEMPTS_LIMIT: u32 = 1_000;

/// The most steps of one run: 10,000. A resumed run reads them all before it goes on; more work is for children.
pub const HISTORY_LIMIT_STEPS: u32 = 10_000;

/// The longest name of a workflow, step, activity or section, in bytes: 200. Names are columns of a table that a person
/// reads, and keys of an index.
pub const NAME_LIMIT_BYTES: usize = 200;

/// The longest concurrency key, idempotency key or label, in bytes: 500. They are keys of an index.
pub const KEY_LIMIT_BYTES: usize = 500;

/// The longest reason that a person gives, in bytes: 4,000. It is a sentence, not a document.
pub const REASON_LIMIT_BYTES: usize = 4_000;

/// The longest message of a recorded failure, in bytes: 64 KiB. A longer one is cut, with a mark at its end.
pub const MESSAGE_LIMIT_BYTES: usize = 64 * 1024;

/// How many failures of children their parent holds in full: 100. A person looks at the first few, and each child has its
/// own in any case; of the later ones the parent holds the code.
pub const CHILD_FAILURES_LIMIT: usize = 100;

/// The longest message of a child's failure that its parent holds beside those of others, in bytes: 2,000, so that a
/// hundred fit beside the ends of thousands.
pub const CHILD_MESSAGE_LIMIT_BYTES: usize = 2_000;

/// `text`, cut at a character's end so that it has at most `limit_bytes`, with a mark where something was cut off.
#[must_use]
pub fn cut(text: String, limit_bytes: usize) -> String {
    const MARK: &str = " … (cut)";
    if text.len() <= limit_bytes {
        return text;
    }
    let mut end = limit_bytes.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_the_end_of_a_character() {
        assert_eq!(cut("short".to_owned(), 100), "short");
        let long = "é".repeat(100);
        let short = cut(long, 51);
        assert!(short.len() <= 51, "{} bytes", short.len());
        assert!(short.ends_with(" … (cut)") && short.starts_with('é'));
    }
}
