//! `jobctl sdmx`: SDMX messages as they are.

use std::fs::File;
use std::io::Read;

use activities::sources::sdmx::read_message;
use catalog_rules::sdmx::canonical::canonical_text;
use catalog_rules::sdmx::fingerprint::artefact_fingerprint;
use engine_rules::failure::{ActivityError as _, Disposition, Failure};
use serde_json::json;

use crate::args::{Inspect, Sdmx};
use crate::exit::{Ended, Exit};
use crate::output::Output;

/// Carries out `jobctl sdmx`. Reads the file alone: no configuration, no catalog.
///
/// # Errors
/// A file that cannot be opened, or that is no structure message. What is wrong within one is a finding, and exit code
/// 6.
pub fn sdmx(out: Output, args: &Sdmx) -> Result<Exit, Ended> {
    match args {
        Sdmx::Inspect(args) => inspect(out, args),
    }
}

fn inspect(out: Output, args: &Inspect) -> Result<Exit, Ended> {
    let input: Box<dyn Read> = if args.file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(&args.file).map_err(|error| {
            Ended::usage(format!("{} cannot be opened: {error}", args.file.display()))
                .with_hint("give the path of a structure message, or - for standard input")
        })?;
        Box::new(file)
    };
    let message = read_message(input).map_err(|error| Ended::from(error.to_failure()))?;
    let mut artefacts = Vec::with_capacity(message.artefacts.len());
    for artefact in &message.artefacts {
        let fingerprint = artefact_fingerprint(artefact).map_err(unspelt)?;
        // In JSON the text is there always; a text for every artefact of a large message is not made for nothing.
        let text = if args.text || out.is_json() { Some(canonical_text(artefact).map_err(unspelt)?) } else { None };
        artefacts.push((artefact.urn(), artefact.class(), fingerprint, text));
    }
    out.line(format!("{}: {} artefacts, {} findings", message.dialect.name(), artefacts.len(), message.findings.len()));
    if args.text {
        for (urn, class, fingerprint, text) in &artefacts {
            out.line(format!("{urn}\n  {class} {fingerprint}"));
            out.line(text.as_deref().unwrap_or_default());
        }
    } else if !artefacts.is_empty() {
        let rows = artefacts
            .iter()
            .map(|(urn, class, fingerprint, _)| [(*class).to_owned(), fingerprint.as_str().to_owned(), urn.clone()]);
        out.table(["CLASS", "FINGERPRINT", "URN"], rows.collect());
    }
    for finding in &message.findings {
        let of = if finding.urn.is_empty() { String::new() } else { format!(" of {}", finding.urn) };
        let place = if finding.place.is_empty() { String::new() } else { format!(" at {}", finding.place) };
        out.line(format!("{}{of}{place}: {}", finding.code, finding.message));
    }
    let listed: Vec<_> = artefacts
        .iter()
        .map(|(urn, class, fingerprint, text)| {
            json!({ "urn": urn, "class": class, "fingerprint": fingerprint.as_str(), "text": text })
        })
        .collect();
    let findings: Vec<_> = message
        .findings
        .iter()
        .map(|finding| {
            json!({
                "urn": finding.urn,
                "place": finding.place,
                "code": finding.code.as_str(),
                "message": finding.message,
            })
        })
        .collect();
    out.document(
        "sdmx.inspect",
        json!({ "format": message.dialect.name(), "artefacts": listed, "findings": findings }),
    );
    Ok(if message.findings.is_empty() { Exit::Done } else { Exit::Findings })
}

/// A value that the canonical text cannot spell, which a reader never makes.
fn unspelt(error: catalog_rules::sdmx::canonical::CanonicalError) -> Ended {
    Ended::from(Failure {
        code: "sdmx.canonical".to_owned(),
        message: error.to_string(),
        disposition: Disposition::Terminal,
        hint: None,
    })
}
