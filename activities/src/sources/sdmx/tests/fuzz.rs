//! Whatever the bytes, a message is read or refused; the reader never panics.

use std::hash::{BuildHasher as _, RandomState};

use catalog_rules::sdmx::canonical::canonical_text;
use catalog_rules::sdmx::decode::decode;

use super::super::read_message;
use super::table::files;
use crate::shared::shared;

/// A generator of numbers that is good enough for places in a file (splitmix64).
struct Numbers(u64);

impl Numbers {
    /// Its seed is printed, and taken from `JOBCTL_TEST_SEED` where that is set.
    fn new() -> Self {
        let seed = std::env::var("JOBCTL_TEST_SEED")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| RandomState::new().hash_one(0_u8));
        println!("JOBCTL_TEST_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit.max(1) as u64).unwrap()
    }
}

/// What is put into a message: what its grammar gives a meaning.
const PIECES: &[&str] = &[
    "<",
    ">",
    "/>",
    "</",
    "&",
    "&#0;",
    "&#x110000;",
    "&lt;",
    "\"",
    "'",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "<?",
    "<!DOCTYPE x>",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "\\ud800",
    "\\u0000",
    "1e999",
    "-",
    "9999999999999999999999",
    "id=\"\"",
    "version=\"*\"",
    "xml:lang=\"\"",
    "\u{0}",
    "\u{7f}",
    "\u{feff}",
    "urn:sdmx:",
    "(",
    ")",
    "=",
    ".",
    "<Ref id=\"A\"/>",
    "<URN/>",
];

/// Reads every file of the reference data cut at random places and with random bytes changed: as often as fits
/// `bytes` of each, and at most `most` times.
fn broken(bytes: usize, most: usize) {
    let Some(folder) = shared("data/sdmx") else { return };
    let mut numbers = Numbers::new();
    let (mut read, mut refused) = (0_u64, 0_u64);
    for path in files(&folder) {
        let whole = std::fs::read(&path).unwrap();
        if !matches!(whole.first(), Some(b'<' | b'{' | 0xEF)) {
            continue;
        }
        let times = (bytes / whole.len().max(1)).clamp(2, most);
        for time in 0..times {
            let mut changed = whole.clone();
            if time % 3 == 0 {
                changed.truncate(numbers.below(changed.len()));
            } else {
                for _ in 0..=numbers.below(4) {
                    let at = numbers.below(changed.len());
                    match numbers.below(4) {
                        0 => changed[at] ^= 1 << numbers.below(8),
                        1 => {
                            changed.remove(at);
                        }
                        2 => changed[at] = u8::try_from(numbers.below(256)).unwrap(),
                        _ => {
                            let piece = PIECES[numbers.below(PIECES.len())];
                            changed.splice(at..at, piece.bytes());
                        }
                    }
                }
            }
            match read_message(&changed[..]) {
                Ok(message) => {
                    read += 1;
                    // Whatever was read has a text, and the text gives it back.
                    for artefact in message.artefacts {
                        let text = canonical_text(&artefact).unwrap();
                        assert_eq!(decode(&text).unwrap(), artefact);
                    }
                }
                Err(_) => refused += 1,
            }
        }
    }
    println!("{read} read, {refused} refused");
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused: this shows nothing");
}

#[test]
fn a_broken_message_is_read_or_refused_and_never_a_panic() {
    broken(120_000, 60);
}

#[test]
fn nightly_many_broken_messages_are_read_or_refused() {
    broken(10_000_000, 1_500);
}

#[test]
fn every_prefix_of_a_small_message_is_refused() {
    for whole in [super::fixtures::ML21, super::fixtures::JSON20] {
        for end in 0..whole.trim_end().len() {
            assert!(read_message(&whole.as_bytes()[..end]).is_err(), "{end}: {:?}", &whole[..end]);
        }
        assert!(read_message(whole.as_bytes()).is_ok());
    }
}
