//! A message that is far larger than what a reader holds of it.

use std::fmt::Write as _;
use std::io::Read;

use catalog_rules::sdmx::fingerprint::artefact_fingerprint;
use catalog_rules::sdmx::model::Artefact;

use super::super::read;

/// A codelist in two languages that is made while it is read: XML or JSON.
struct Codes {
    is_json: bool,
    codes: u32,
    /// The next code; before the first the head, after the last the tail.
    next: u32,
    text: String,
    given: usize,
}

impl Codes {
    fn new(codes: u32, is_json: bool) -> Self {
        let head = if is_json {
            "{\"data\": {\"codelists\": [{\"id\": \"CL\", \"agencyID\": \"STC\", \"version\": \"1.0\", \"names\": {\"en\": \"C\"}, \"codes\": ["
        } else {
            "<m:Structure xmlns:m=\"http://www.sdmx.org/resources/sdmxml/schemas/v3_0/message\" xmlns:s=\"s\" xmlns:c=\"c\">\
             <m:Structures><s:Codelists><s:Codelist id=\"CL\" agencyID=\"STC\" version=\"1.0\"><c:Name xml:lang=\"en\">C</c:Name>"
        };
        Self { is_json, codes, next: 0, text: head.to_owned(), given: 0 }
    }

    fn more(&mut self) {
        self.text.clear();
        self.given = 0;
        let n = self.next;
        self.next += 1;
        let parent = n / 10;
        if n == self.codes {
            self.text.push_str(if self.is_json {
                "]}]}}"
            } else {
                "</s:Codelist></s:Codelists></m:Structures></m:Structure>"
            });
        } else if n < self.codes && self.is_json {
            let comma = if n == 0 { "" } else { "," };
            let parent = if n == 0 { String::new() } else { format!("\"parent\": \"C{parent}\", ") };
            write!(
                self.text,
                "{comma}{{\"id\": \"C{n}\", {parent}\"names\": {{\"en\": \"Code number {n}\", \"fr\": \"Code numéro {n}\"}}}}"
            )
            .unwrap();
        } else if n < self.codes {
            let parent = if n == 0 { String::new() } else { format!("<s:Parent>C{parent}</s:Parent>") };
            write!(
                self.text,
                "<s:Code id=\"C{n}\"><c:Name xml:lang=\"en\">Code number {n}</c:Name>\
                 <c:Name xml:lang=\"fr\">Code numéro {n}</c:Name>{parent}</s:Code>"
            )
            .unwrap();
        }
    }
}

impl Read for Codes {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.given == self.text.len() && self.next <= self.codes {
            self.more();
        }
        let left = &self.text.as_bytes()[self.given..];
        let size = left.len().min(into.len());
        into[..size].copy_from_slice(&left[..size]);
        self.given += size;
        Ok(size)
    }
}

/// The fingerprint of the list as it was read.
fn fingerprint(codes: u32, is_json: bool) -> String {
    let mut found = Vec::new();
    let summary = read(Codes::new(codes, is_json), &mut |artefact| {
        let Artefact::Codelist(list) = &artefact else { panic!() };
        assert_eq!(list.codes.len(), codes as usize);
        found.push(artefact_fingerprint(&artefact).unwrap().to_string());
    })
    .unwrap();
    assert_eq!(summary.findings, []);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn a_list_made_while_it_is_read_is_the_same_in_xml_and_json() {
    assert_eq!(fingerprint(5_000, false), fingerprint(5_000, true));
}

#[test]
fn nightly_580_000_codes_in_two_languages_are_read_and_fingerprinted() {
    assert_eq!(fingerprint(580_000, false), fingerprint(580_000, true));
}
