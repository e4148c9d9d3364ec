//! What a simulated store is told to do, and what it wrote down.

use std::fmt;
use std::sync::Arc;

use catalog_rules::layout;

use super::super::Store;

/// What a store is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// [`Store::get`].
    Get,
    /// [`Store::create_once`].
    Create,
    /// [`Store::replace_once`].
    Replace,
    /// [`Store::delete`].
    Delete,
    /// [`Store::delete_if`].
    DeleteIf,
    /// [`Store::list`].
    List,
    /// [`Store::now`].
    Now,
    /// [`Store::persist`].
    Persist,
    /// [`Store::prepare`].
    Prepare,
    /// [`Store::lock`].
    Lock,
}

impl CallKind {
    /// Whether the call has a condition and an answer that can be unknown.
    #[must_use]
    pub fn is_conditional_write(self) -> bool {
        match self {
            Self::Create | Self::Replace => true,
            Self::Get
            | Self::Delete
            | Self::DeleteIf
            | Self::List
            | Self::Now
            | Self::Persist
            | Self::Prepare
            | Self::Lock => false,
        }
    }

    /// Whether the call may change an object.
    #[must_use]
    pub fn is_write(self) -> bool {
        match self {
            Self::Create | Self::Replace | Self::Delete | Self::DeleteIf => true,
            Self::Get | Self::List | Self::Now | Self::Persist | Self::Prepare | Self::Lock => false,
        }
    }
}

/// One call, as the store wrote it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its number, from 0.
    pub n: usize,
    /// Who called, as [`Simulated::client`](super::Simulated::client) was told.
    pub client: usize,
    /// What was asked.
    pub kind: CallKind,
    /// The path; empty where there is none.
    pub path: String,
    /// What was done to it instead of what was asked.
    pub fault: Option<Fault>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails, says so, and nothing was done: the connection was never made.
    Refused,
    /// It was not done, and the caller does not know that. A call that is not a conditional write fails.
    NotDone,
    /// It was done, and the caller does not know that: the answer is dropped, or the store answers 500. A call that is
    /// not a conditional write fails.
    Done,
    /// It was done, and the caller is told that the condition did not hold: a client that tried again by itself and met
    /// its own work (D2).
    DoneAndTaken,
    /// The caller does not know, and it is done later, by its condition as it holds then. A call that writes nothing
    /// fails.
    Late(Late),
    /// The caller ends before the call: every later call of this client fails, until it is revived.
    Killed,
    /// The caller ends after the call.
    KilledAfter,
}

/// When a late write lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// After so many more calls of anybody.
    Calls(usize),
    /// Once the store's time is so much later: [`Simulated::advance_ms`](super::Simulated::advance_ms).
    Ms(i64),
}

/// Something that is done beside a call, with the store that is wrapped: nothing fails there, and no call is counted.
pub type Hook = Box<dyn FnOnce(&Arc<dyn Store>) + Send>;

/// What is done at a call of a script.
pub enum Act {
    /// The call does not go as it should.
    Fault(Fault),
    /// Something happens just before it.
    Before(Hook),
    /// Something happens just after it, before the caller has its answer.
    After(Hook),
}

impl fmt::Debug for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => f.debug_tuple("Fault").field(fault).finish(),
            Self::Before(_) => f.write_str("Before"),
            Self::After(_) => f.write_str("After"),
        }
    }
}

/// The calls that a line of a script is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum On {
    /// Every call.
    Any,
    /// Every call of this kind.
    Kind(CallKind),
    /// Every call of this kind at this path.
    At(CallKind, String),
    /// Every conditional write: leaves, roots, `CURRENT`, manifests and whatever else is created or replaced.
    Writes,
    /// The creation of a leaf.
    Leaf,
    /// The creation of a root: the commit point.
    Root,
    /// A replacement of `CURRENT`.
    Current,
}

impl On {
    /// Whether a call of `kind` at `path` is meant.
    #[must_use]
    pub fn is(&self, kind: CallKind, path: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Kind(asked) => *asked == kind,
            Self::At(asked, at) => *asked == kind && at == path,
            Self::Writes => kind.is_conditional_write(),
            Self::Leaf => kind == CallKind::Create && path.starts_with(layout::LEAVES),
            Self::Root => kind == CallKind::Create && layout::seq_of_root(path).is_some(),
            Self::Current => kind == CallKind::Replace && path == layout::CURRENT,
        }
    }
}

/// A line of a script: what is done at the call of number `skip` (from 0) among those that `on` means.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) on: On,
    pub(super) skip: usize,
    pub(super) act: Option<Act>,
}

/// How often a random store fails, in calls of a thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Odds {
    /// Reads and calls without a condition that fail.
    pub reads: u32,
    /// Writes whose answer is not what became of them: every kind of [`Fault`] but the two that end the caller.
    pub writes: u32,
    /// Calls at which the caller ends.
    pub kills: u32,
    /// How many calls later a late write lands at most.
    pub late_calls: usize,
    /// How many milliseconds of the store's time later a late write lands at most.
    pub late_ms: i64,
}

/// Chance from a seed: the same seed gives the same numbers everywhere (SplitMix64).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// The numbers of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // What is left over by the modulus is far below what a test could see.
        usize::try_from(self.next_u64() % (bound.max(1) as u64)).unwrap_or_default()
    }

    /// One of `of`, or none of an empty slice.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// True `thousandths` times in a thousand.
    pub fn happens(&mut self, thousandths: u32) -> bool {
        self.below(1000) < thousandths as usize
    }

    /// The fault of a call of `kind`, if it has one.
    pub(super) fn fault(&mut self, kind: CallKind, odds: &Odds) -> Option<Fault> {
        if self.happens(odds.kills) {
            return Some(if self.happens(500) { Fault::Killed } else { Fault::KilledAfter });
        }
        if !kind.is_write() {
            return self.happens(odds.reads).then_some(Fault::Refused);
        }
        self.happens(odds.writes).then(|| match self.below(6) {
            0 => Fault::Refused,
            1 => Fault::NotDone,
            2 => Fault::Done,
            3 => Fault::DoneAndTaken,
            4 => Fault::Late(Late::Calls(1 + self.below(odds.late_calls))),
            _ => Fault::Late(Late::Ms(
                1 + i64::try_from(self.next_u64() % odds.late_ms.max(1).unsigned_abs()).unwrap_or(0),
            )),
        })
    }
}
