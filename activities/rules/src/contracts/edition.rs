//! What is done to an edition beside publishing it.

use serde::{Deserialize, Serialize};

use super::publish::Cause;
use crate::ids::{EditionId, ProductId};

/// Deletes an unsealed edition.
pub const DISCARD: &str = "edition.discard";

/// Input of [`DISCARD`], and of the workflow of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscardInput {
    /// The product.
    pub product_id: ProductId,
    /// The unsealed edition.
    pub edition_id: EditionId,
    /// Who asked, and why.
    pub cause: Cause,
}

/// Output of [`DISCARD`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscardOutput {
    /// The edition that is gone.
    pub edition_id: EditionId,
}
