//! What a run that waits for its children does next: decisions only, made from how the children stand.

/// The children of one step, counted by how they stand. Those that are in no count have ended, or are not yet in the
/// journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Family {
    /// How many there are to be.
    pub total: usize,
    /// How many are in the journal: always the first ones.
    pub created: usize,
    /// How many may be at work at a time.
    pub limit: usize,
    /// Their parent drives them.
    pub here: usize,
    /// At work in another process, or in this one by another's hand.
    pub elsewhere: usize,
    /// Begun, and nobody's: their owner died or gave them back.
    pub left: usize,
    /// In line for their key, which is not free.
    pub in_line: usize,
    /// First in line, and their key is free.
    pub may_begin: usize,
    /// A person who let the parent go on lets them go on with it.
    pub to_resume: usize,
    /// A person holds them.
    pub paused: usize,
    /// A person must act.
    pub blocked: usize,
}

/// What their parent was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyOrder {
    /// Nothing: it goes on.
    GoOn,
    /// The run is to end, and its children with it.
    Cancel,
    /// This process is to end. A run that is cancelled too is cleaned up by whoever takes it over.
    Release {
        /// The run is to end as well.
        is_cancelled: bool,
    },
    /// A person holds the run.
    Pause,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilyPlan {
    /// Let these begin, then plan again.
    Begin(Begin),
    /// Let so many that nobody works on go on to their end, then plan again.
    CleanUp(usize),
    /// Wait for news.
    Wait,
    /// Every child has ended: their ends are the step's result.
    Finish,
    /// What can go on without a person has ended: the parent is blocked.
    Block,
    /// Every child that was started has ended: the parent is told that it is cancelled.
    Tell,
    /// The parent stops here.
    Stop,
}

/// How many of which children begin. Those that began before come first, then those that have stood in line, then those
/// that a person let go on, then new ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Begin {
    /// Of those that nobody works on.
    pub left: usize,
    /// Of those first in line.
    pub may_begin: usize,
    /// Of those that a person let go on.
    pub to_resume: usize,
    /// New ones.
    pub create: usize,
}

/// The most children of one step in line for keys that others hold: 256. They take no place among those at work, so that a
/// key that is long held does not keep the others from their work; but each is looked at whenever a key may have come free.
pub const IN_LINE_LIMIT: usize = 256;

impl Family {
    /// Those in the journal that have not ended.
    const fn open(&self) -> usize {
        self.here
            + self.elsewhere
            + self.left
            + self.in_line
            + self.may_begin
            + self.to_resume
            + self.paused
            + self.blocked
    }

    /// How many more may be at work. A limit of none would wait for ever, so it is one.
    fn free(&self) -> usize {
        self.limit.max(1).saturating_sub(self.here + self.elsewhere)
    }

    const fn has_ended(&self) -> bool {
        self.created == self.total && self.open() == 0
    }
}

/// What is to be done about `family`, whose parent was told `order`.
#[must_use]
pub fn plan_family(family: &Family, order: FamilyOrder) -> FamilyPlan {
    match order {
        // Also where every child has ended: they may have ended by this very cancel.
        FamilyOrder::Cancel | FamilyOrder::Release { is_cancelled: true } if family.open() == 0 => FamilyPlan::Tell,
        FamilyOrder::GoOn | FamilyOrder::Pause | FamilyOrder::Release { .. } if family.has_ended() => {
            FamilyPlan::Finish
        }
        // Those that began and stand in line again clean up when their turn comes; the others in line have ended.
        FamilyOrder::Cancel => {
            let idle = family.open() - family.here - family.elsewhere - family.in_line;
            match idle.min(family.free()) {
                0 => FamilyPlan::Wait,
                most @ 1.. => FamilyPlan::CleanUp(most),
            }
        }
        // They stop before their next step; then all of the family is given back.
        FamilyOrder::Release { .. } if family.here > 0 => FamilyPlan::Wait,
        FamilyOrder::Release { .. } | FamilyOrder::Pause => FamilyPlan::Stop,
        FamilyOrder::GoOn => go_on(family),
    }
}

fn go_on(family: &Family) -> FamilyPlan {
    let mut free = family.free();
    let mut take = |of: usize| {
        let taken = of.min(free);
        free -= taken;
        taken
    };
    let mut begin = Begin {
        left: take(family.left),
        may_begin: take(family.may_begin),
        to_resume: take(family.to_resume),
        create: 0,
    };
    if family.in_line + family.may_begin < IN_LINE_LIMIT {
        begin.create = take(family.total - family.created);
    }
    if begin != Begin::default() {
        return FamilyPlan::Begin(begin);
    }
    let goes_on = family.open() - family.paused - family.blocked;
    if goes_on == 0 && family.created == family.total && family.blocked > 0 {
        return FamilyPlan::Block;
    }
    FamilyPlan::Wait
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEN: Family = Family {
        total: 10,
        created: 0,
        limit: 4,
        here: 0,
        elsewhere: 0,
        left: 0,
        in_line: 0,
        may_begin: 0,
        to_resume: 0,
        paused: 0,
        blocked: 0,
    };

    fn go_on(family: Family) -> FamilyPlan {
        plan_family(&family, FamilyOrder::GoOn)
    }

    #[test]
    fn as_many_begin_as_have_a_place() {
        let create = |create| FamilyPlan::Begin(Begin { create, ..Begin::default() });
        assert_eq!(go_on(TEN), create(4));
        assert_eq!(go_on(Family { created: 4, here: 3, ..TEN }), create(1));
        assert_eq!(go_on(Family { created: 4, here: 3, elsewhere: 1, ..TEN }), FamilyPlan::Wait);
        assert_eq!(go_on(Family { created: 9, here: 1, ..TEN }), create(1), "not more than there are");
        assert_eq!(go_on(Family { created: 10, here: 1, ..TEN }), FamilyPlan::Wait);
        assert_eq!(go_on(Family { created: 10, ..TEN }), FamilyPlan::Finish);
        assert_eq!(go_on(Family { total: 0, ..TEN }), FamilyPlan::Finish);
        assert_eq!(go_on(Family { limit: 0, ..TEN }), create(1), "a limit of none would wait for ever");
    }

    #[test]
    fn what_began_before_comes_first() {
        let family = Family { created: 5, left: 1, may_begin: 1, to_resume: 1, ..TEN };
        let all = Begin { left: 1, may_begin: 1, to_resume: 1, create: 1 };
        assert_eq!(go_on(family), FamilyPlan::Begin(all));
        assert_eq!(go_on(Family { here: 2, ..family }), FamilyPlan::Begin(Begin { to_resume: 0, create: 0, ..all }));
    }

    #[test]
    fn those_in_line_and_those_held_take_no_place() {
        let create = FamilyPlan::Begin(Begin { create: 4, ..Begin::default() });
        assert_eq!(go_on(Family { created: 5, in_line: 5, ..TEN }), create);
        assert_eq!(go_on(Family { created: 5, paused: 2, blocked: 3, ..TEN }), create);
        let many = Family { total: 1_000, created: IN_LINE_LIMIT, in_line: IN_LINE_LIMIT, ..TEN };
        assert_eq!(go_on(many), FamilyPlan::Wait);
    }

    #[test]
    fn the_parent_is_blocked_once_nothing_goes_on_without_a_person() {
        let held = Family { created: 10, blocked: 1, paused: 1, ..TEN };
        assert_eq!(go_on(held), FamilyPlan::Block);
        assert_eq!(go_on(Family { here: 1, ..held }), FamilyPlan::Wait);
        assert_eq!(go_on(Family { elsewhere: 1, ..held }), FamilyPlan::Wait);
        assert_eq!(go_on(Family { in_line: 1, ..held }), FamilyPlan::Wait);
        assert_eq!(go_on(Family { blocked: 0, ..held }), FamilyPlan::Wait, "who holds it lets it go on");
    }

    #[test]
    fn a_cancelled_parent_is_told_when_every_child_has_ended() {
        let cancel = |family| plan_family(&family, FamilyOrder::Cancel);
        assert_eq!(cancel(TEN), FamilyPlan::Tell);
        assert_eq!(cancel(Family { created: 5, ..TEN }), FamilyPlan::Tell);
        assert_eq!(cancel(Family { created: 10, ..TEN }), FamilyPlan::Tell, "they ended by it");
        assert_eq!(plan_family(&Family { created: 10, ..TEN }, FamilyOrder::Pause), FamilyPlan::Finish);
        assert_eq!(cancel(Family { created: 5, here: 1, elsewhere: 1, ..TEN }), FamilyPlan::Wait);
        for one in [
            Family { left: 1, ..TEN },
            Family { may_begin: 1, ..TEN },
            Family { to_resume: 1, ..TEN },
            Family { paused: 1, ..TEN },
            Family { blocked: 1, ..TEN },
        ] {
            assert_eq!(cancel(Family { created: 5, here: 3, ..one }), FamilyPlan::CleanUp(1));
            assert_eq!(cancel(Family { created: 5, here: 4, ..one }), FamilyPlan::Wait, "no place is free");
        }
        assert_eq!(cancel(Family { created: 5, in_line: 1, ..TEN }), FamilyPlan::Wait, "its turn comes");
    }

    #[test]
    fn a_process_that_ends_waits_for_the_children_that_it_drives() {
        for is_cancelled in [false, true] {
            let release = |family| plan_family(&family, FamilyOrder::Release { is_cancelled });
            assert_eq!(release(Family { created: 5, here: 1, ..TEN }), FamilyPlan::Wait);
            assert_eq!(release(Family { created: 5, left: 1, elsewhere: 1, ..TEN }), FamilyPlan::Stop);
            let none_left = if is_cancelled { FamilyPlan::Tell } else { FamilyPlan::Stop };
            assert_eq!(release(Family { created: 5, ..TEN }), none_left);
        }
        assert_eq!(plan_family(&Family { created: 5, here: 1, ..TEN }, FamilyOrder::Pause), FamilyPlan::Stop);
    }

    fn families() -> impl Strategy<Value = Family> {
        let counts = proptest::collection::vec(0..6_usize, 8);
        (counts, 0..6_usize, 0..6_usize, 0..8_usize).prop_map(|(counts, ended, new, limit)| {
            let created = counts.iter().sum::<usize>() + ended;
            let [here, elsewhere, left, in_line, may_begin, to_resume, paused, blocked] =
                counts.try_into().unwrap_or_default();
            let total = created + new;
            Family { total, created, limit, here, elsewhere, left, in_line, may_begin, to_resume, paused, blocked }
        })
    }

    proptest! {
        #[test]
        fn a_plan_never_goes_over_the_limit_and_never_begins_what_is_not_there(family in families()) {
            if let FamilyPlan::CleanUp(most) = plan_family(&family, FamilyOrder::Cancel) {
                prop_assert!(most > 0 && family.here + family.elsewhere + most <= family.limit.max(1));
            }
            if let FamilyPlan::Begin(begin) = go_on(family) {
                let begins = begin.left + begin.may_begin + begin.to_resume + begin.create;
                prop_assert!(begins > 0, "or it would plan for ever");
                prop_assert!(family.here + family.elsewhere + begins <= family.limit.max(1));
                prop_assert!(begin.left <= family.left && begin.may_begin <= family.may_begin);
                prop_assert!(begin.to_resume <= family.to_resume && begin.create <= family.total - family.created);
            }
        }

        #[test]
        fn a_parent_waits_only_where_news_can_come(family in families(), cancel in any::<bool>()) {
            let order = if cancel { FamilyOrder::Cancel } else { FamilyOrder::GoOn };
            if plan_family(&family, order) == FamilyPlan::Wait {
                prop_assert!(family.here + family.elsewhere + family.in_line + family.paused > 0);
            }
        }
    }
}
