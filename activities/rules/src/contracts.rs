//! The activities by name, with what each is given and gives back.
//!
//! These are what a run's journal holds, so a field is added with a default and never renamed or given another
//! meaning. An output carries intent and identity (ids, digests), never the catalog's state: an activity that commits
//! reads head, history and clock itself (DESIGN §2.2, Sections).

pub mod edition;
pub mod fold;
pub mod inventory;
pub mod operations;
pub mod publish;
pub mod recovery;
