//! `jobctl edition …`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Edition {
    /// List the editions of a product, or of every product
    List {
        /// Only this product
        #[arg(long)]
        product: Option<String>,
    },
    /// Show an edition's manifest in short
    Show(EditionRef),
    /// Check an edition; exit code 6 when there are findings
    Check {
        #[command(flatten)]
        edition: EditionRef,
        /// Which checks: where it is sealed, where a copy lands, or each time it is opened
        #[arg(long, value_enum, default_value = "publish")]
        at: At,
        /// Leave out the recomputation of fingerprints at publish
        #[arg(long)]
        no_fingerprints: bool,
        /// Another edition of the product whose content this one must equal
        #[arg(long, value_name = "EDITION")]
        expect: Option<String>,
    },
    /// List the files that a copy of the edition needs, one path a line under the product's folder
    Files {
        #[command(flatten)]
        edition: EditionRef,
        /// Only these tiers
        #[arg(long, value_delimiter = ',', value_enum)]
        tiers: Vec<Tier>,
        /// The manifest alone, for the second step of a copy
        #[arg(long, conflicts_with = "tiers")]
        manifest: bool,
    },
    /// Copy a sealed edition into another product folder, the manifest last
    Copy {
        #[command(flatten)]
        edition: EditionRef,
        /// The edition's new folder, named by its edition id; its data goes into data/ beside it
        destination: PathBuf,
        /// Only these tiers
        #[arg(long, value_delimiter = ',', value_enum)]
        tiers: Vec<Tier>,
    },
    /// Delete an unsealed edition; its data files are left to garbage collection
    Discard {
        #[command(flatten)]
        edition: EditionRef,
        /// Why
        #[arg(long)]
        reason: String,
    },
}

/// Names an edition: by product and id, or by its folder.
#[derive(Debug, Args)]
pub struct EditionRef {
    /// The edition's id (or a beginning or an end of it), or the path of its folder
    pub edition: String,
    /// The product, where the id alone does not tell
    #[arg(long)]
    pub product: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum At {
    Publish,
    Receive,
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tier {
    Required,
    Lazy,
    Remote,
}
