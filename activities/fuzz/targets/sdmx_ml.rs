//! SDMX-ML.
#![no_main]

use activities::sources::sdmx::read_message;
use catalog_rules::sdmx::canonical::canonical_text;
use catalog_rules::sdmx::decode::decode;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = read_message(bytes) {
        for artefact in message.artefacts {
            let text = canonical_text(&artefact).expect("whatever was read has a text");
            assert_eq!(decode(&text).expect("and the text reads back"), artefact);
        }
    }
});
