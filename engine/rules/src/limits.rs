//! What the engine refuses to hold, each with its reason.

use crate::failure::{ActivityError, Disposition, Failure};

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

/// The most bytes of all labels of a run together: 16 KiB. They are printed beside the run and searched one by one.
pub const LABELS_LIMIT_BYTES: usize = 16 * 1024;

/// The largest export of a run, in bytes of its document: 32 MiB. It is read whole, checked and kept as one row; a run
/// with 10,000 steps of some kilobytes each fits.
pub const EXPORT_LIMIT_BYTES: usize = 32 * 1024 * 1024;

/// A payload is larger than the journal holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subject} has {size_bytes} bytes; the journal holds at most {limit_bytes}")]
pub struct PayloadTooLarge {
    /// What is too large, such as `the input`.
    pub subject: String,
    /// Its size as JSON, in bytes.
    pub size_bytes: usize,
    /// The limit, in bytes.
    pub limit_bytes: usize,
}

impl ActivityError for PayloadTooLarge {
    fn code(&self) -> &'static str {
        "engine.payload_too_large"
    }

    fn disposition(&self) -> Disposition {
        Disposition::Terminal
    }

    fn hint(&self) -> Option<String> {
        Some("write the content to a file or an object and pass its path and digest".to_owned())
    }
}

/// Refuses a payload, given by its size as JSON, that the journal does not hold: the one place that decides it, for the
/// input and output of runs and steps and for what a signal carries.
///
/// # Errors
/// [`PayloadTooLarge`] for more than [`PAYLOAD_LIMIT_BYTES`].
pub fn check_payload(subject: impl Into<String>, size_bytes: usize) -> Result<(), PayloadTooLarge> {
    if size_bytes <= PAYLOAD_LIMIT_BYTES {
        return Ok(());
    }
    Err(PayloadTooLarge { subject: subject.into(), size_bytes, limit_bytes: PAYLOAD_LIMIT_BYTES })
}

/// `failure` with each text cut to what a journal holds. It is cut before it is seen or recorded, so that a replayed
/// failure equals the live one.
#[must_use]
pub fn bounded(failure: Failure) -> Failure {
    Failure {
        code: cut(failure.code, NAME_LIMIT_BYTES),
        message: cut(failure.message, MESSAGE_LIMIT_BYTES),
        disposition: failure.disposition,
        hint: failure.hint.map(|hint| cut(hint, REASON_LIMIT_BYTES)),
    }
}

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
    fn a_payload_of_the_limit_fits_and_one_byte_more_is_refused_with_its_size_and_the_way_out() {
        assert_eq!(check_payload("the input", PAYLOAD_LIMIT_BYTES), Ok(()));
        let refused = check_payload("the input", PAYLOAD_LIMIT_BYTES + 1).expect_err("one byte more");
        assert_eq!(refused.to_string(), "the input has 1048577 bytes; the journal holds at most 1048576");
        assert!(refused.hint().expect("a way out").contains("digest"));
        assert_eq!(refused.disposition(), Disposition::Terminal);
    }

    #[test]
    fn every_text_of_a_failure_is_bounded() {
        let large = || "x".repeat(10 * MESSAGE_LIMIT_BYTES);
        let failure =
            Failure { code: large(), message: large(), disposition: Disposition::Terminal, hint: Some(large()) };
        let small = bounded(failure);
        assert_eq!((small.code.len(), small.message.len()), (NAME_LIMIT_BYTES, MESSAGE_LIMIT_BYTES));
        assert_eq!(small.hint.as_ref().map(String::len), Some(REASON_LIMIT_BYTES));
        assert_eq!(bounded(small.clone()), small, "what was cut is not cut again");
    }

    #[test]
    fn a_text_is_cut_at_the_end_of_a_character() {
        assert_eq!(cut("short".to_owned(), 100), "short");
        let long = "é".repeat(100);
        let short = cut(long, 51);
        assert!(short.len() <= 51, "{} bytes", short.len());
        assert!(short.ends_with(" … (cut)") && short.starts_with('é'));
    }
}
