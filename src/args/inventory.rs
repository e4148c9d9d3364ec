//! `jobctl inventory …`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Inventory {
    /// The newest version: who wrote it and why, each product with its live edition, and what waits for a release
    Show,
    /// The versions, newest first: when, who, why and what changed
    Log {
        /// Only versions that changed this product
        #[arg(long)]
        product: Option<String>,
        /// How many at the most
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// What differs between two versions, near or far; without either, what the newest version changed
    Diff {
        /// The one version; the version before the newest, if it is left out
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        from: Option<u64>,
        /// The other version; the newest, if it is left out
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        to: Option<u64>,
    },
    /// Every product: what is live, what waits for a release until when, and what was refused why
    Products(InventoryAt),
    /// One product: each of its editions with its state, since when, and by which version, whom and why
    Product {
        /// The product, such as 14100287
        product: String,
        #[command(flatten)]
        at: InventoryAt,
    },
}

/// Which version of the Inventory is read.
#[derive(Debug, Args)]
pub struct InventoryAt {
    /// The version that was the newest then: 2026-11-30T08:30:00-05:00, 2026-11-30, 08:30 (today, here) or 12h (back from
    /// now)
    #[arg(long, value_name = "TIME", conflicts_with = "seq")]
    pub at: Option<String>,
    /// The version with this number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seq: Option<u64>,
}
