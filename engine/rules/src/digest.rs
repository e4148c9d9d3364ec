//! The digest of an input: equal for equal values, whatever the order in which a map gave its entries.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// `value` as JSON without spaces, the members of each object sorted by name: what the journal holds.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => {
            let _ = write!(text, "{number}");
        }
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            // Sorted here, not by the map's type: a feature of serde_json chosen elsewhere can change that.
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| name.as_str());
            text.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(name, text);
                text.push(':');
                write_canonical(member, text);
            }
            text.push('}');
        }
    }
}

fn write_string(string: &str, text: &mut String) {
    let _ = write!(text, "{}", Value::from(string));
}

/// The SHA-256 of a canonical text, as 64 lowercase hexadecimal digits.
#[must_use]
pub fn digest_text(canonical: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(canonical.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The digest of `value`: the SHA-256 of its canonical text.
#[must_use]
pub fn input_digest(value: &Value) -> String {
    digest_text(&canonical_json(value))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_sorted_at_every_depth_and_arrays_are_not() {
        let value = json!({"b": [{"z": 1, "a": null}, "x\"y\n"], "a": 1.5, "é": true});
        assert_eq!(canonical_json(&value), r#"{"a":1.5,"b":[{"a":null,"z":1},"x\"y\n"],"é":true}"#);
    }

    #[test]
    fn the_digest_is_the_sha256_of_the_text() {
        assert_eq!(input_digest(&json!({})), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    }

    proptest! {
        #[test]
        fn the_order_of_a_map_never_enters(entries in proptest::collection::hash_map(".*", any::<i64>(), 0..20)) {
            let forward: HashMap<String, i64> = entries.clone().into_iter().collect();
            let mut list: Vec<(String, i64)> = entries.into_iter().collect();
            list.reverse();
            let mut backward = HashMap::with_capacity(1024);
            backward.extend(list);
            let digests =
                [forward, backward].map(|map| input_digest(&serde_json::to_value(map).expect("a map of numbers")));
            prop_assert_eq!(&digests[0], &digests[1]);
        }

        #[test]
        fn the_text_reads_back_as_the_value(text in ".*", number in any::<i64>(), float in any::<f64>()) {
            prop_assume!(float.is_finite());
            let value = json!({"t": text, "n": [number, {"f": float}]});
            let back: Value = serde_json::from_str(&canonical_json(&value)).expect("canonical JSON is JSON");
            // The text of a number is what is compared: a float may come back as its neighbour without the exact parser.
            prop_assert_eq!(&back["t"], &value["t"]);
            prop_assert_eq!(&back["n"][0], &value["n"][0]);
        }
    }
}
