//! The effective token: what a server applies, for its cache keys (*edition* §5.4).

use std::fmt;

use super::document::{Audience, Overlay};
use super::hook::Hooks;
use super::order::TextsAreFolded;
use crate::ids::{EditionId, Sha256Hex};

/// What a server that applies overlays keys its caches on: the edition id without overlays, else a SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectiveToken(String);

impl EffectiveToken {
    /// The token's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EffectiveToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The format of the text that is hashed: its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFormat {
    /// `v2`, of readers of manifest 2.x.
    V2,
    /// `v3`, of *edition* §5.4.
    V3,
}

impl TokenFormat {
    fn line(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V3 => "v3",
        }
    }
}

/// The effective token of `overlays`, applied to `edition` in this order for `audience` with `hooks`.
///
/// # Errors
/// [`TextsAreFolded`] when a text applies to the audience: a server must not apply it (*edition* §5.6).
pub fn effective_token(
    edition: &EditionId,
    overlays: &[Overlay],
    audience: Option<&Audience>,
    hooks: &Hooks,
) -> Result<EffectiveToken, TextsAreFolded> {
    token_in(TokenFormat::V3, edition, overlays, audience, hooks)
}

/// As [`effective_token`], in another format.
///
/// # Errors
/// As [`effective_token`].
pub fn token_in(
    format: TokenFormat,
    edition: &EditionId,
    overlays: &[Overlay],
    audience: Option<&Audience>,
    hooks: &Hooks,
) -> Result<EffectiveToken, TextsAreFolded> {
    super::order::refuse_texts(overlays, audience)?;
    if overlays.is_empty() {
        return Ok(EffectiveToken(edition.to_string()));
    }
    let mut text = format!("{}\n{edition}\n{hooks}", format.line());
    for overlay in overlays {
        text.push('\n');
        text.push_str(overlay.digest(audience).as_str());
    }
    Ok(EffectiveToken(Sha256Hex::of(text.as_bytes()).to_string()))
}
