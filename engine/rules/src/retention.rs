//! Which finished runs may go, and in which portions (DESIGN §2.2, Retention): decisions only, made from what the journal
//! holds.
//!
//! A run goes together with the runs that belong to it: its children, their children, and so on. Such a family goes whole
//! or stays whole, by the end of its last member and by how its head, the one run that belongs to no other, ended.

use std::ops::Range;

use crate::state::RunState;

/// Until when a run must have ended to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutoff {
    /// Runs that succeeded or were cancelled go when they ended before this, in milliseconds since
    /// 1970-01-01T00:00:00Z.
    pub ended_before_ms: i64,
    /// Runs that failed go when they ended before this; with `None` they stay.
    pub failed_ended_before_ms: Option<i64>,
}

impl Cutoff {
    /// No run that ended at this time or later goes.
    #[must_use]
    pub fn latest_ms(&self) -> i64 {
        self.failed_ended_before_ms.map_or(self.ended_before_ms, |failed| failed.max(self.ended_before_ms))
    }
}

/// A run of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// How it stands.
    pub state: RunState,
    /// When it ended, in milliseconds since 1970-01-01T00:00:00Z.
    pub ended_at_ms: Option<i64>,
    /// Whether a run that is not finished replays it.
    pub replayed: bool,
}

/// Why a family stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// A member is not finished. So each finished run stays while a descendant or an ancestor of it lives.
    Live,
    /// A member is replayed by a run that is not finished.
    Replayed,
    /// Its head failed, and failed runs stay longer than others.
    Failed,
    /// The head or another member ended too late.
    Recent,
}

/// Whether the family whose head ended as `head` goes. `None` for the cutoff is a family whose purge was begun: it goes
/// on, whatever its age.
///
/// # Errors
/// [`Stays`], the first reason in its order.
pub fn judge(head: RunState, members: impl IntoIterator<Item = Member>, cutoff: Option<&Cutoff>) -> Result<(), Stays> {
    let (mut latest_ms, mut replayed) = (i64::MIN, false);
    for member in members {
        match member.ended_at_ms {
            Some(ended_at_ms) if member.state.is_terminal() => latest_ms = latest_ms.max(ended_at_ms),
            Some(_) | None => return Err(Stays::Live),
        }
        replayed |= member.replayed;
    }
    if replayed {
        return Err(Stays::Replayed);
    }
    let Some(cutoff) = cutoff else { return Ok(()) };
    match head {
        RunState::Succeeded | RunState::Cancelled if latest_ms < cutoff.ended_before_ms => Ok(()),
        RunState::Failed if cutoff.failed_ended_before_ms.is_some_and(|before_ms| latest_ms < before_ms) => Ok(()),
        RunState::Failed if latest_ms < cutoff.ended_before_ms => Err(Stays::Failed),
        RunState::Succeeded | RunState::Cancelled | RunState::Failed => Err(Stays::Recent),
        RunState::Queued | RunState::Running | RunState::Waiting | RunState::Paused | RunState::Blocked => {
            Err(Stays::Live)
        }
    }
}

/// What deleting something costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// How many rows go.
    pub rows: u64,
    /// How many bytes of payload go with them.
    pub bytes: u64,
}

impl Weight {
    fn plus(self, other: Self) -> Self {
        Self { rows: self.rows.saturating_add(other.rows), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// How much one transaction deletes at most, so that nobody else waits long for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// How many items.
    pub items: usize,
    /// How many rows and bytes they have together.
    pub weight: Weight,
}

impl Portion {
    /// Whether an item of this weight fits at all.
    #[must_use]
    pub const fn holds(&self, weight: Weight) -> bool {
        weight.rows <= self.weight.rows && weight.bytes <= self.weight.bytes
    }
}

/// Divides items, in their order, into portions of neighbours. An item that does not fit at all has a portion of its own.
#[must_use]
pub fn divide(weights: impl IntoIterator<Item = Weight>, portion: &Portion) -> Vec<Range<usize>> {
    let mut portions = Vec::new();
    let (mut begin, mut end, mut sum) = (0, 0, Weight::default());
    for weight in weights {
        let together = sum.plus(weight);
        if end > begin && (end - begin >= portion.items || !portion.holds(together)) {
            portions.push(begin..end);
            (begin, sum) = (end, weight);
        } else {
            sum = together;
        }
        end += 1;
    }
    if end > begin {
        portions.push(begin..end);
    }
    portions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CUTOFF: Cutoff = Cutoff { ended_before_ms: 100, failed_ended_before_ms: Some(50) };

    fn ended(state: RunState, ended_at_ms: i64) -> Member {
        Member { state, ended_at_ms: Some(ended_at_ms), replayed: false }
    }

    #[test]
    fn a_run_goes_by_its_end_and_how_it_ended() {
        use RunState::{Cancelled, Failed, Succeeded};
        for (state, ended_at_ms, expected) in [
            (Succeeded, 99, Ok(())),
            (Succeeded, 100, Err(Stays::Recent)),
            (Cancelled, 99, Ok(())),
            (Failed, 49, Ok(())),
            (Failed, 50, Err(Stays::Failed)),
            (Failed, 99, Err(Stays::Failed)),
            (Failed, 100, Err(Stays::Recent)),
        ] {
            let found = judge(state, [ended(state, ended_at_ms)], Some(&CUTOFF));
            assert_eq!(found, expected, "{state} at {ended_at_ms}");
        }
        let kept = Cutoff { failed_ended_before_ms: None, ..CUTOFF };
        assert_eq!(judge(Failed, [ended(Failed, 0)], Some(&kept)), Err(Stays::Failed));
        assert_eq!(judge(Failed, [ended(Failed, 0)], None), Ok(()), "what was begun is ended");
        assert_eq!((CUTOFF.latest_ms(), kept.latest_ms()), (100, 100));
        assert_eq!(Cutoff { failed_ended_before_ms: Some(200), ..CUTOFF }.latest_ms(), 200);
    }

    #[test]
    fn a_family_stays_for_one_member_that_must_stay() {
        let head = ended(RunState::Succeeded, 10);
        for state in RunState::ALL.into_iter().filter(|state| !state.is_terminal()) {
            let live = Member { state, ended_at_ms: None, replayed: false };
            for cutoff in [Some(&CUTOFF), None] {
                assert_eq!(judge(RunState::Succeeded, [head, live], cutoff), Err(Stays::Live), "{state}");
                assert_eq!(judge(state, [live, head], cutoff), Err(Stays::Live), "{state} is the head");
            }
        }
        let replayed = Member { replayed: true, ..head };
        assert_eq!(judge(RunState::Succeeded, [head, replayed], None), Err(Stays::Replayed));
        let late = ended(RunState::Failed, 100);
        assert_eq!(judge(RunState::Succeeded, [head, late], Some(&CUTOFF)), Err(Stays::Recent));
        let failed = ended(RunState::Failed, 99);
        assert_eq!(judge(RunState::Succeeded, [head, failed], Some(&CUTOFF)), Ok(()), "the head decides");
    }

    proptest! {
        #[test]
        fn portions_hold_every_item_once_in_order_and_within_their_limits(
            weights in proptest::collection::vec((0_u64..40, 0_u64..40), 0..60),
            (items, rows, bytes) in (1_usize..9, 0_u64..60, 0_u64..60),
        ) {
            let weights: Vec<Weight> = weights.into_iter().map(|(rows, bytes)| Weight { rows, bytes }).collect();
            let portion = Portion { items, weight: Weight { rows, bytes } };
            let portions = divide(weights.iter().copied(), &portion);
            let all: Vec<usize> = portions.iter().cloned().flatten().collect();
            prop_assert_eq!(all, (0..weights.len()).collect::<Vec<_>>());
            for range in portions {
                let sum = weights[range.clone()].iter().fold(Weight::default(), |sum, weight| sum.plus(*weight));
                prop_assert!(range.len() <= items);
                prop_assert!(range.len() == 1 || portion.holds(sum), "{:?} has {:?}", range, sum);
            }
        }
    }
}
