//! The SDMX information model, as far as a product needs it, and the text its fingerprints hash (*edition* §9).
//!
//! [`model`] holds the artefacts, [`urn`] names them, [`canonical`] writes the text that [`fingerprint`] hashes,
//! [`decode`] reads that text back, [`inspect`] finds what is wrong in artefacts at hand, [`references`] says what an artefact refers to and [`closure`] what belongs to a
//! dataflow.

#[macro_use]
mod class;
pub mod canonical;
pub mod closure;
pub mod decode;
pub mod finding;
pub mod fingerprint;
pub mod inspect;
pub mod model;
pub mod references;
pub mod urn;

#[cfg(test)]
mod vectors;
