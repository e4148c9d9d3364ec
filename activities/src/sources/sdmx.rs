//! Structure messages of SDMX: SDMX-ML 2.1, 3.0 and 3.1, and SDMX-JSON 2.0, read into the model of
//! [`catalog_rules::sdmx`].
//!
//! A reader takes bytes and nothing else, and never panics, whatever they are. What it cannot hold it reports as a
//! [`Finding`], with the artefact's URN and the place; only what is no structure message, or breaks off, is an error.
//!
//! **Memory.** An artefact is handed on as soon as its element ends. An item (a code, a concept, a node of a hierarchy, a
//! key) becomes model as soon as it ends, so that beside the artefact at hand, as the model holds it, a reader holds at
//! most [`HELD_BYTES`] of the message as a tree, one event of at most [`EVENT_BYTES`], [`Findings::LIMIT`] findings, and
//! until the end the data and metadata structures and the representations of the concepts, since components take on
//! those of concepts that may come later in a message. What is larger is refused by name.

mod context;
pub mod csv;
mod delivery;
mod error;
mod input;
mod json;
mod map;
mod node;
mod time;
mod xml;

use std::io::{BufRead as _, Read};

use catalog_rules::sdmx::finding::Finding;
#[cfg(doc)]
use catalog_rules::sdmx::finding::Findings;
use catalog_rules::sdmx::inspect;
use catalog_rules::sdmx::model::Artefact;

pub use context::Dialect;
use delivery::Delivery;
pub use error::ReadError;
use input::Input;

/// How much of a message is held as a tree: everything of an artefact but its items, or one item. The largest seen in
/// practice, a constraint with every value of a census, is under 10 MB.
pub const HELD_BYTES: usize = 64 * 1024 * 1024;
/// How large one tag or text of XML may be.
pub const EVENT_BYTES: usize = 8 * 1024 * 1024;
/// How deep elements may be nested. A hierarchy of codes takes one level each in XML, two in JSON, where serde_json's
/// own limit of 128 comes first.
pub const DEPTH: usize = 256;

/// What a message was, beside its artefacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The format.
    pub dialect: Dialect,
    /// What the reader found, in the order of the message.
    pub findings: Vec<Finding>,
}

/// A message, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The format.
    pub dialect: Dialect,
    /// The artefacts in the order of the message, but data and metadata structures last.
    pub artefacts: Vec<Artefact>,
    /// What the reader found, what is wrong in each artefact, and what is wrong between them.
    pub findings: Vec<Finding>,
}

/// Reads a structure message to its end and hands each artefact on as it ends; data and metadata structures come last.
/// The findings are those of the reader and of each artefact alone ([`inspect::artefact`]).
///
/// # Errors
/// [`ReadError`] for what is no structure message of a format that is read here, breaks off, or is larger than the
/// limits; what was handed on by then is not the whole message and must not be used.
pub fn read(input: impl Read, emit: &mut dyn FnMut(Artefact)) -> Result<Summary, ReadError> {
    let mut input = Input::new(input);
    input.skip_mark()?;
    let start: Vec<u8> = input.fill_buf().map_err(ReadError::Io)?.iter().copied().take(400).collect();
    let mut delivery = Delivery::new(emit);
    match start.first() {
        None => return Err(ReadError::Empty),
        Some(b'<') => xml::read(input, &mut delivery)?,
        Some(b'{') => json::read(input, &mut delivery)?,
        Some(_) => {
            let found: String = String::from_utf8_lossy(&start).chars().take(24).collect();
            return Err(ReadError::Format { found });
        }
    }
    let (dialect, findings) = delivery.finish();
    Ok(Summary { dialect, findings })
}

/// Reads a structure message whole, and looks at what is wrong between its artefacts too ([`inspect::message`]).
///
/// # Errors
/// As [`read`].
pub fn read_message(input: impl Read) -> Result<Message, ReadError> {
    let mut artefacts = Vec::new();
    let Summary { dialect, mut findings } = read(input, &mut |artefact| artefacts.push(artefact))?;
    findings.extend(inspect::message(&artefacts));
    Ok(Message { dialect, artefacts, findings })
}

#[cfg(test)]
mod tests;
