//! What is said of the whole table, as annotations of its dataflow, bounded in size.

use std::sync::Arc;

use catalog_rules::sdmx::model::{Annotation, AnnotationUrl, InternationalString};

use super::super::finding::{FindingKind, Findings};
use super::super::metadata::Metadata;
use super::{Parts, value_annotation};

/// The longest text of one note that is kept, in characters.
const NOTE_CHARACTERS: usize = 8_000;
/// How much text of notes and corrections is kept in all, in bytes.
const NOTES_BYTES: usize = 256 << 10;

/// The annotations in a fixed order: what the table is, then surveys, subjects, notes and corrections.
pub(super) fn annotations(parts: &Parts<'_>, file: &Arc<str>, findings: &mut Findings) -> Vec<Annotation> {
    let mut out: Vec<Annotation> = Vec::new();
    out.extend(value_annotation("PRODUCT_ID", parts.product_id.as_str()));
    let cube = |field: fn(&Metadata) -> &str| -> InternationalString {
        let texts =
            parts.metadata.iter().map(|metadata| (metadata.language.tag().to_owned(), field(metadata).to_owned()));
        texts.filter(|(_, text)| !text.is_empty()).collect()
    };
    let first = |field: fn(&Metadata) -> &str| cube(field).into_values().next().unwrap_or_default();
    out.extend(value_annotation("CANSIM_ID", &first(|metadata| &metadata.cube.cansim_id)));
    out.extend(texts("FREQUENCY", None, cube(|metadata| &metadata.cube.frequency)));
    out.extend(texts("ARCHIVE_STATUS", None, cube(|metadata| &metadata.cube.archive_status)));
    out.extend(value_annotation("START_PERIOD", &first(|metadata| &metadata.cube.start)));
    out.extend(value_annotation("END_PERIOD", &first(|metadata| &metadata.cube.end)));
    let urls: Vec<AnnotationUrl> = parts
        .metadata
        .iter()
        .filter(|metadata| !metadata.cube.url.is_empty())
        .map(|metadata| AnnotationUrl {
            url: metadata.cube.url.clone(),
            lang: Some(metadata.language.tag().to_owned()),
            ..AnnotationUrl::default()
        })
        .collect();
    if !urls.is_empty() {
        out.push(Annotation { r#type: Some("SOURCE".to_owned()), urls, ..Annotation::default() });
    }
    out.extend(value_annotation("TABLE_NOTES", &first(|metadata| &metadata.cube.notes)));
    out.extend(listed("SURVEY", parts, |metadata| &metadata.surveys));
    out.extend(listed("SUBJECT", parts, |metadata| &metadata.subjects));

    let mut budget = NOTES_BYTES;
    let mut left_out = 0_u64;
    let mut keep = |annotation: Annotation| {
        let size: usize = annotation.text.values().map(String::len).sum();
        if size > budget {
            left_out += 1;
            return None;
        }
        budget -= size;
        Some(annotation)
    };
    let notes: Vec<Annotation> =
        listed("NOTE", parts, |metadata| &metadata.notes).into_iter().filter_map(&mut keep).collect();
    out.extend(notes);
    let mut corrections: Vec<Annotation> = Vec::new();
    for metadata in parts.metadata {
        for correction in &metadata.corrections {
            let tag = metadata.language.tag().to_owned();
            let text = bounded(&correction.text);
            match corrections.iter_mut().find(|known| known.id.as_deref() == Some(&correction.id)) {
                Some(known) => {
                    known.text.insert(tag, text);
                }
                None => corrections.push(Annotation {
                    id: Some(correction.id.clone()),
                    r#type: Some("CORRECTION".to_owned()),
                    text: InternationalString::from([(tag, text)]),
                    value: Some(correction.date.clone()),
                    ..Annotation::default()
                }),
            }
        }
    }
    out.extend(corrections.into_iter().filter_map(&mut keep));
    if left_out > 0 {
        out.extend(value_annotation("NOTES_LEFT_OUT", &left_out.to_string()));
        findings.note(FindingKind::NotesLeftOut, file, None, 0, || {
            format!("{left_out} notes and corrections beyond {NOTES_BYTES} bytes were left out of the annotations")
        });
    }
    out
}

fn texts(kind: &str, id: Option<&str>, text: InternationalString) -> Option<Annotation> {
    (!text.is_empty()).then(|| Annotation {
        id: id.map(str::to_owned),
        r#type: Some(kind.to_owned()),
        text,
        ..Annotation::default()
    })
}

/// One annotation per id, with the text of each language, in the order of the first file.
fn listed(kind: &str, parts: &Parts<'_>, field: fn(&Metadata) -> &Vec<(String, String)>) -> Vec<Annotation> {
    let mut out: Vec<(String, InternationalString)> = Vec::new();
    let mut known: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for metadata in parts.metadata {
        for (id, text) in field(metadata) {
            let at = *known.entry(id).or_insert_with(|| {
                out.push((id.clone(), InternationalString::new()));
                out.len() - 1
            });
            out[at].1.insert(metadata.language.tag().to_owned(), bounded(text));
        }
    }
    out.into_iter().filter_map(|(id, text)| texts(kind, Some(&id), text)).collect()
}

/// At most [`NOTE_CHARACTERS`] of `text`.
fn bounded(text: &str) -> String {
    match text.char_indices().nth(NOTE_CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
