//! The lists that every table shares: statuses, symbols and unit multipliers.
//!
//! They are frozen: a change of a text is a new version of the list, since an artefact of many products must be the
//! same in all of them (*catalog* §6.5). A test pins them.

use catalog_rules::sdmx::model::{Annotation, Code, Codelist, InternationalString, Maintained};

/// The agency that maintains every artefact of this source.
pub(super) const AGENCY: &str = "STC";
/// The version of every artefact of this source.
pub(super) const VERSION: &str = "1.0";

/// The id of the list of statuses.
pub(super) const STATUSES: &str = "CL_OBS_STATUS";
/// The id of the list of symbols.
pub(super) const SYMBOLS: &str = "CL_SYMBOL";
/// The id of the list of unit multipliers.
pub(super) const MULTIPLIERS: &str = "CL_UNIT_MULT";

/// A text in English and French.
pub(super) fn both(en: &str, fr: &str) -> InternationalString {
    InternationalString::from([("en".to_owned(), en.to_owned()), ("fr".to_owned(), fr.to_owned())])
}

fn list(id: &str, name: InternationalString, codes: Vec<Code>) -> Codelist {
    Codelist {
        common: Maintained {
            id: id.to_owned(),
            maintainer: AGENCY.to_owned(),
            version: VERSION.to_owned(),
            name,
            ..Maintained::default()
        },
        codes,
        ..Codelist::default()
    }
}

/// A code whose text in tables is `en` in English files and `fr` in French ones, where that is not its id.
fn code(id: &str, written: Option<(&str, &str)>, en: &str, fr: &str) -> Code {
    let annotations = written
        .map(|(en, fr)| Annotation {
            r#type: Some("SYMBOL".to_owned()),
            value: Some(en.to_owned()),
            text: both(en, fr),
            ..Annotation::default()
        })
        .into_iter()
        .collect();
    Code { id: id.to_owned(), name: both(en, fr), annotations, ..Code::default() }
}

/// `STC:CL_OBS_STATUS(1.0)`: what a status says of a value. `..`, `...` and `<LOD` are no identifiers of SDMX; the
/// annotation `SYMBOL` holds how they are written in tables.
pub(super) fn statuses() -> Codelist {
    list(
        STATUSES,
        both("Observation status", "Statut de l'observation"),
        vec![
            code(
                "NOT_AVAILABLE",
                Some(("..", "..")),
                "not available for a specific reference period",
                "indisponible pour une période de référence précise",
            ),
            code(
                "BELOW_LOD",
                Some(("<LOD", "<LDD")),
                "less than the limit of detection",
                "inférieur à la limite de détection",
            ),
            code(
                "0s",
                None,
                "value rounded to 0 (zero) where there is a meaningful distinction between true zero and the value that was rounded",
                "valeur arrondie à 0 (zéro) là où il y a une distinction importante entre le zéro absolu et la valeur arrondie",
            ),
            code("A", None, "data quality: excellent", "qualité des données : excellente"),
            code("B", None, "data quality: very good", "qualité des données : très bonne"),
            code("C", None, "data quality: good", "qualité des données : bonne"),
            code("D", None, "data quality: acceptable", "qualité des données : acceptable"),
            code("E", None, "use with caution", "à utiliser avec prudence"),
            code("F", None, "too unreliable to be published", "trop peu fiable pour être publié"),
            code("NOT_APPLICABLE", Some(("...", "...")), "not applicable", "n'ayant pas lieu de figurer"),
            code(
                "x",
                None,
                "suppressed to meet the confidentiality requirements of the Statistics Act",
                "confidentiel en vertu des dispositions de la Loi sur la statistique",
            ),
        ],
    )
}

/// `STC:CL_SYMBOL(1.0)`: whether a value is preliminary or revised.
pub(super) fn symbols() -> Codelist {
    list(
        SYMBOLS,
        both("Symbol", "Symbole"),
        vec![code("p", None, "preliminary", "provisoire"), code("r", None, "revised", "révisé")],
    )
}

/// The names of the powers of ten that a value is to be multiplied by, 0 to 9, in English and French.
pub(super) const POWERS: [(&str, &str); 10] = [
    ("units", "unités"),
    ("tens", "dizaines"),
    ("hundreds", "centaines"),
    ("thousands", "milliers"),
    ("tens of thousands", "dizaines de milliers"),
    ("hundreds of thousands", "centaines de milliers"),
    ("millions", "millions"),
    ("tens of millions", "dizaines de millions"),
    ("hundreds of millions", "centaines de millions"),
    ("billions", "milliards"),
];

/// The codes of [`multipliers`].
pub(super) const POWER_CODES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// `STC:CL_UNIT_MULT(1.0)`: the power of ten that a value is to be multiplied by.
pub(super) fn multipliers() -> Codelist {
    let codes = POWER_CODES.iter().zip(POWERS).map(|(id, (en, fr))| code(id, None, en, fr)).collect();
    list(MULTIPLIERS, both("Unit multiplier", "Multiplicateur d'unité"), codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that changes here changes an artefact of every product: make a new version of the list instead.
    #[test]
    fn the_lists_are_frozen() {
        use catalog_rules::sdmx::fingerprint::artefact_fingerprint;
        use catalog_rules::sdmx::model::Artefact;
        let found = [statuses(), symbols(), multipliers()]
            .map(|list| artefact_fingerprint(&Artefact::Codelist(list)).unwrap().to_string());
        assert_eq!(
            found,
            [
                "b2bb4903ae1dc82a0731fd5fde64df999673ca426098d92fc15b9bc33ecadc65",
                "5bb3bb8d799b2dcba2595b57aa13ea390627b452f154788f0ddc4de0b32e4cf2",
                "70b0932d11369858651313257e607a65493f3580fd52380090a7ea61dbcd70ac",
            ]
        );
    }

    #[test]
    fn every_code_has_both_names_and_an_identifier_of_sdmx() {
        for list in [statuses(), symbols(), multipliers()] {
            assert!(!list.codes.is_empty());
            for code in &list.codes {
                assert!(code.id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_@$-".contains(&b)), "{}", code.id);
                assert_eq!(code.name.keys().collect::<Vec<_>>(), ["en", "fr"]);
            }
        }
    }
}
