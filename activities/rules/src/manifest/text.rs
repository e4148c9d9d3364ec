//! How a table fingerprint and a stability stand in a manifest: as their text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::sdmx::fingerprint::TableFingerprint;
use crate::sdmx::urn::Stability;

impl Serialize for TableFingerprint {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TableFingerprint {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Stability {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Stability {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        [Self::Semantic, Self::Legacy]
            .into_iter()
            .find(|stability| stability.as_str() == text)
            .ok_or_else(|| serde::de::Error::unknown_variant(&text, &["semantic", "legacy"]))
    }
}
