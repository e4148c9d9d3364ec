//! The words after `jobctl sdmx`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Sdmx {
    /// Read a structure message: each artefact's URN, class and fingerprint, and every finding; exit code 6 when there
    /// are findings
    Inspect(Inspect),
}

#[derive(Debug, Args)]
pub struct Inspect {
    /// A structure message in SDMX-ML 2.1, 3.0 or 3.1, or SDMX-JSON 2.0; - for standard input
    pub file: PathBuf,
    /// Print each artefact's canonical text too, which its fingerprint hashes
    #[arg(long)]
    pub text: bool,
}
