//! Overlays 1.2 (*edition* §5): documents that change annotations, and names and descriptions when they are folded.
//!
//! [`Overlay::decode`] reads a document and refuses what the format does not know; [`check`] says what else of it can
//! have no effect. [`Overlay::digest`] names a document as an audience sees it, [`effective_token`] what a server
//! applies. [`Applying`] puts entries in their order and [`Applying::apply`] changes artefacts by them.
//!
//! # Where the specification leaves it open
//!
//! - Items are those that have a URN of their own in the store (*catalog* §4.7: the item kinds of the references check).
//!   The descriptors of a data structure and its uses of metadata attributes are parts of it, and no selector reaches
//!   them.
//! - Levels of a hierarchy and the parts of a structure map that have URNs are not reached yet: the store does not keep
//!   these classes, so nothing that is folded or served holds one.
//! - A class is selected by its name in the model and by its name in a URN: `Attribute` and `DataAttribute` select the
//!   same, also within a URN.
//! - A text acts on what has a name: it passes over components.
//! - A URN without a version names no artefact: an entry never moves to a later version by itself.

mod apply;
mod canonical;
mod document;
mod doubt;
mod finding;
mod hook;
mod order;
mod parse;
mod selector;
mod target;
mod token;
mod tree;

pub use apply::{Applied, ApplyError, EntryEffect};
pub use document::{
    Audience, EntryOperation, OVERLAY_FORMAT, Overlay, OverlayAnnotation, OverlayEntry, OverlayText, TextField,
    TextOperation,
};
pub use doubt::{Checked, check};
pub use finding::{OverlayError, OverlayFault, OverlayFinding};
pub use hook::{BadHook, HookId, Hooks, MergeHook};
pub use order::{Applying, Purpose, Source, TextsAreFolded};
pub use selector::{BadSelector, Selector, SelectorKind};
pub use token::{EffectiveToken, TokenFormat, effective_token, token_in};

#[cfg(test)]
mod tests;
