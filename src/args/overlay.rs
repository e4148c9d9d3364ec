//! The words of `jobctl overlay …`.

use std::path::PathBuf;

use catalog_rules::overlay::Hooks;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Overlay {
    /// Read overlays and tell everything that is wrong with them; exit code 6 when there is anything
    Check {
        /// The overlays
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print each overlay's digest: the SHA-256 of its canonical JSON
    Digest {
        /// The overlays
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// As this audience sees them: without the entries that are for others
        #[arg(long, value_name = "AUDIENCE")]
        audience: Option<String>,
    },
    /// Print the effective token: what a server that applies the overlays, in this order, keys its caches on
    Token(OverlayToken),
}

#[derive(Debug, Args)]
pub struct OverlayToken {
    /// The product
    #[arg(long)]
    pub product: String,
    /// The edition: its id, a beginning or an end of it, or its folder; without it, the one that is live
    #[arg(long, value_name = "EDITION")]
    pub edition: Option<String>,
    /// The overlays, in the order in which they are applied; without any, the token is the edition's id
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Whom the server serves
    #[arg(long, value_name = "AUDIENCE")]
    pub audience: Option<String>,
    /// The merge hook of an annotation type; again for further types
    #[arg(long = "hook", value_name = "TYPE=PACKAGE:NAME@VERSION")]
    pub hooks: Vec<Hooks>,
}

#[derive(Debug, Args)]
pub struct Fold {
    /// The product, such as 14100287
    #[arg(long)]
    pub product: String,
    /// An overlay; again for further ones, in the order in which they are applied
    #[arg(long = "overlay", value_name = "FILE", required = true)]
    pub overlays: Vec<PathBuf>,
    /// Only the entries that are for this audience or for everybody; without it, every entry
    #[arg(long, value_name = "AUDIENCE")]
    pub audience: Option<String>,
    /// When it may be released, in a catalog with its embargo on: 2026-12-04T08:30 in the catalog's time zone, or an instant
    /// with its offset; without it, never by itself
    #[arg(long, value_name = "TIME")]
    pub release_at: Option<String>,
    /// Why, for the Inventory's record; asked for at a terminal
    #[arg(long)]
    pub reason: Option<String>,
    /// Leave the run to jobctl serve instead of staying with it
    #[arg(long)]
    pub detach: bool,
}
