//! States and transitions (*catalog* §6.4).

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use catalog_rules::inventory::{EntryState, EventKind, Mark, Operation, Release, SchemaVersion};
use engine_rules::clock::Clock;
use engine_rules::failure::ActivityError as _;
use uuid::Uuid;

use super::world::{
    Checked, Failure, Place, World, by, contains, data, describe, differs, equal, holds, product, some,
};

const HOUR: i64 = 60 * 60 * 1000;

/// (sealed) → `live`.
pub(super) fn with_embargo_off_a_record_goes_live_in_its_version(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let first = world.publish(&data("p", 1, None))?;
    equal("the first version", (first.seq.get(), first.state, first.already), (2, Some(Mark::Live), false))?;
    world.publish(&data("p", 2, Some(1)))?;
    world.is("p", &[(1, Mark::Superseded), (2, Mark::Live)])?;
    equal("what the public sees", world.shown()?, world.editions(&[2])?)?;
    let head = world.head()?;
    let changed = world.leaf("p")?.editions.iter().map(|entry| entry.state_changed_at).collect::<BTreeSet<_>>();
    equal("both took their state with the version", changed, BTreeSet::from([head.root.created_at]))?;
    world.sound().map(drop)
}

/// (sealed) → `embargoed`; LiveInventory.
pub(super) fn with_embargo_on_a_record_waits_and_no_public_reader_sees_it(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    let at = place.now()?.plus_ms(HOUR);
    equal("the edition", world.publish(&data("p", 1, None).due(at))?.state, Some(Mark::Embargoed))?;
    equal("what the public sees", world.shown()?, BTreeSet::new())?;
    let waiting = world.full()?.embargoed()?;
    equal("what waits", waiting.iter().map(|(_, entry)| entry.release_at).collect(), vec![Some(at)])?;
    world.sound().map(drop)
}

/// Fast-forward.
pub(super) fn an_edition_off_the_live_one_is_refused_and_both_are_named(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    for previous in [None, Some(1)] {
        let refused =
            world.refuse_edition(&data("p", 3 + previous.unwrap_or(0), previous), "catalog.not_fast_forward")?;
        let (edition, live) = (world.edition(3 + previous.unwrap_or(0))?, world.edition(2)?);
        contains("the refusal", &refused.to_string(), &["§6.4", edition.as_str(), live.as_str()])?;
        contains("its fix", &refused.hint().unwrap_or_default(), &["jobctl run publish --product p"])?;
    }
    // The first edition of a product is built on nothing.
    world.refuse_edition(&data("q", 9, Some(2)), "catalog.not_fast_forward").map(drop)
}

/// `embargoed` → `live`, release_due(now); the release clock.
pub(super) fn a_release_takes_what_is_due_by_the_stores_time(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    let now = place.now()?;
    world.publish(&data("a", 1, None).due(now.plus_ms(-1)))?;
    world.publish(&data("b", 2, None).due(now.plus_ms(HOUR)))?;
    world.publish(&data("c", 3, None))?;
    let released = world.commit(&Operation::Release(Release::Due))?;
    equal("the version", (released.state, released.refused), (Some(Mark::Live), Vec::new()))?;
    equal("what the public sees", world.shown()?, world.editions(&[1])?)?;
    let head = world.head()?;
    equal("the kind", head.root.event.kind, EventKind::Release)?;
    let entry = world.leaf("a")?;
    holds("release_at is null again", entry.editions.iter().all(|entry| entry.release_at.is_none()))?;
    // Nothing is due any more: nothing is written.
    let again = world.commit(&Operation::Release(Release::Due))?;
    equal("once more", (again.seq, again.already), (head.root.seq, true))?;
    world.sound().map(drop)
}

/// `embargoed` → `live`, explicit (D21).
pub(super) fn a_named_release_takes_what_is_never_due(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    world.publish(&data("a", 1, None))?;
    world.publish(&data("b", 2, None).due(place.now()?.plus_ms(HOUR)))?;
    world.commit(&Operation::Release(Release::Editions(world.one("a", 1)?)))?;
    world.commit(&world.release(&["b"])?)?;
    equal("what the public sees", world.shown()?, world.editions(&[1, 2])?)?;
    let refused = world.refuse(&world.release(&["b"])?, "catalog.nothing_embargoed")?;
    contains("the refusal", &refused.to_string(), &["§6.4", " b "])?;
    world.sound().map(drop)
}

/// Release batches report per product.
pub(super) fn a_release_refuses_what_it_must_and_persists_each_refusal(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    let due = place.now()?.plus_ms(-1);
    for edition in [data("a", 1, None), data("b", 2, None), data("b", 3, None), data("c", 4, None)] {
        world.publish(&edition.due(due))?;
    }
    world.commit(&world.cancel("b", 3)?)?;
    let path = catalog_rules::layout::manifest(&product("c")?, &world.edition(4)?);
    place.delete(&path)?;
    let released = world.commit(&Operation::Release(Release::Due))?;
    equal("what the public sees", world.shown()?, world.editions(&[1, 2])?)?;
    let refused = some("a refusal", released.refused.first())?;
    equal(
        "the refused edition",
        (&refused.edition_id, refused.code.as_str()),
        (&world.edition(4)?, "catalog.manifest_missing"),
    )?;
    equal(
        "what the version persists",
        catalog_rules::inventory::refused_in(&world.head()?.root),
        released.refused.clone(),
    )?;
    world.sound().map(drop)
}

/// `embargoed` → `withdrawn`, cancel.
pub(super) fn a_cancelled_edition_is_never_released(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    world.publish(&data("p", 1, None).due(place.now()?.plus_ms(-1)))?;
    equal("the edition", world.commit(&world.cancel("p", 1)?)?.state, Some(Mark::Withdrawn))?;
    world.commit(&Operation::Release(Release::Due))?;
    equal("what the public sees", world.shown()?, BTreeSet::new())?;
    holds("a cancel that is repeated changes nothing", world.commit(&world.cancel("p", 1)?)?.already)?;
    world.refuse(&Operation::Release(Release::Editions(world.one("p", 1)?)), "catalog.wrong_state")?;
    world.sound().map(drop)
}

/// `embargoed` → `withdrawn`, supersede_pending.
pub(super) fn one_pending_edition_gives_way_to_another_on_its_base(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, None))?;
    let supersede = |n: u64, by: u64| -> Result<Operation, Failure> {
        Ok(Operation::Supersede { product_id: product("p")?, edition_id: world.edition(n)?, by: world.edition(by)? })
    };
    world.commit(&supersede(1, 2)?)?;
    world.is("p", &[(1, Mark::Withdrawn), (2, Mark::Embargoed)])?;
    world.commit(&world.release(&["p"])?)?;
    world.publish(&data("p", 3, Some(2)))?;
    world.publish(&data("p", 4, Some(2)).at_schema("2.53"))?;
    world.refuse(&supersede(3, 4)?, "catalog.not_same_base")?;
    world.sound().map(drop)
}

/// Rollback is conditional and forward.
pub(super) fn a_rollback_is_a_new_version_that_drops_no_other_release(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    world.publish(&data("q", 3, None))?;
    let before = world.head()?.root.seq;
    let committed = world.commit(&world.rollback("p")?)?;
    equal("the version", committed.seq, before.next())?;
    world.is("p", &[(1, Mark::Live), (2, Mark::Withdrawn)])?;
    equal("what the public sees", world.shown()?, world.editions(&[1, 3])?)?;
    equal("CURRENT", world.current()?.map(|current| current.seq), Some(committed.seq))?;
    world.sound().map(drop)
}

/// Rollback, `if_live`.
pub(super) fn a_rollback_is_refused_once_something_else_is_live(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    let asked = world.rollback("p")?;
    world.publish(&data("p", 3, Some(2)))?;
    let refused = world.refuse(&asked, "catalog.live_changed")?;
    let (expected, found) = (world.edition(2)?, world.edition(3)?);
    contains("the refusal", &refused.to_string(), &["if_live", expected.as_str(), found.as_str()])?;
    world.refuse(&world.back("p", 3, 3)?, "catalog.wrong_state")?;
    world.sound().map(drop)
}

/// Rollback ripples.
pub(super) fn what_was_built_on_a_withdrawn_edition_is_refused_with_the_fix(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    world.commit(&Operation::Embargo(true))?;
    world.publish(&data("p", 3, Some(2)))?;
    world.commit(&world.rollback("p")?)?;
    let pending = world.refuse(&world.release(&["p"])?, "catalog.built_on_withdrawn")?;
    let unsealed = world.refuse_edition(&data("p", 4, Some(2)), "catalog.built_on_withdrawn")?;
    for (refused, fix) in [(pending, "jobctl run withdraw --product p"), (unsealed, "jobctl edition discard")] {
        let (base, live) = (world.edition(2)?, world.edition(1)?);
        contains("the refusal", &refused.to_string(), &["fast-forward", base.as_str(), live.as_str()])?;
        contains("its fix", &refused.hint().unwrap_or_default(), &[fix, "jobctl run publish --product p"])?;
    }
    world.sound().map(drop)
}

/// D22: a product without a head.
pub(super) fn a_live_edition_is_taken_back_without_a_replacement(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    let withdraw = Operation::WithdrawLive { product_id: product("p")?, if_live: world.editions(&[1])? };
    world.commit(&withdraw)?;
    equal("what the public sees", world.shown()?, BTreeSet::new())?;
    equal("the public's view of the product", world.live()?.product(&product("p")?)?, Vec::new())?;
    holds("once more", world.commit(&withdraw)?.already)?;
    // The next edition is built on nothing again.
    world.publish(&data("p", 2, None))?;
    world.refuse(&withdraw, "catalog.live_changed")?;
    world.sound().map(drop)
}

/// `superseded`, `withdrawn` → tombstone.
pub(super) fn only_what_is_out_of_use_is_retired(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    world.refuse(&world.retire("p", 2)?, "catalog.wrong_state")?;
    let inside = Operation::Retire { editions: world.one("p", 1)?, before_window: false };
    world.refuse(&inside, "catalog.inside_window")?;
    equal("the edition", world.commit(&world.retire("p", 1)?)?.state, Some(Mark::Tombstone))?;
    world.is("p", &[(1, Mark::Tombstone), (2, Mark::Live)])?;
    holds("once more", world.commit(&world.retire("p", 1)?)?.already)?;
    world.refuse(&world.cancel("p", 1)?, "catalog.retired")?;
    // Sealed long ago: it is not recorded again.
    let again = world.publish(&data("p", 1, None))?;
    equal("a record of it", (again.already, again.state), (true, Some(Mark::Tombstone)))?;
    world.sound().map(drop)
}

/// (tombstone) → `superseded`.
pub(super) fn a_reinstate_verifies_every_listed_file(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let first = data("p", 1, None);
    world.publish(&first)?;
    world.publish(&data("p", 2, Some(1)))?;
    let reinstate = world.reinstate(&first)?;
    holds("what is superseded", world.commit(&reinstate)?.already)?;
    world.commit(&world.retire("p", 1)?)?;
    for name in ["metadata.duckdb", "tables.ducklake"] {
        let path = world.file_path(&first, name)?;
        let whole = some("a listed file", place.get(&path)?)?;
        place.delete(&path)?;
        let refused = world.refuse(&reinstate, "catalog.not_verified")?;
        contains("the refusal", &refused.to_string(), &["reinstate", name, "is missing"])?;
        let mut other = whole.to_vec();
        other.reverse();
        world.put(&path, &other)?;
        let refused = world.refuse(&reinstate, "catalog.not_verified")?;
        contains("the refusal", &refused.to_string(), &[name, "SHA-256"])?;
        world.put(&path, &whole)?;
    }
    equal("the edition", world.commit(&reinstate)?.state, Some(Mark::Superseded))?;
    world.is("p", &[(1, Mark::Superseded), (2, Mark::Live)])?;
    // And it is a target again.
    world.commit(&world.back("p", 2, 1)?)?;
    equal("what the public sees", world.shown()?, world.editions(&[1])?)?;
    world.sound().map(drop)
}

/// D27, reschedule.
pub(super) fn a_rescheduled_edition_keeps_its_state(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    world.publish(&data("p", 1, None).due(place.now()?.plus_ms(HOUR)))?;
    let since = world.leaf("p")?.editions.first().map(|entry| entry.state_changed_at);
    let at = place.now()?.plus_ms(-1);
    world.commit(&world.reschedule("p", 1, Some(at))?)?;
    let leaf = world.leaf("p")?;
    let entry = some("the entry", leaf.editions.first())?;
    equal("the entry", (entry.state, entry.release_at), (EntryState::Embargoed, Some(at)))?;
    equal("since when", Some(entry.state_changed_at), since)?;
    equal("the kind", world.head()?.root.event.kind, EventKind::EmbargoChange)?;
    world.commit(&Operation::Release(Release::Due))?;
    equal("what the public sees", world.shown()?, world.editions(&[1])?)?;
    world.refuse(&world.reschedule("p", 1, None)?, "catalog.wrong_state")?;
    world.sound().map(drop)
}

/// *catalog* §9.2 step 5, D27.
pub(super) fn an_old_schema_is_superseded_once_a_newer_one_is_live(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None).at_schema("2.51"))?;
    let products = Some(BTreeSet::from([product("p")?]));
    let supersede = Operation::SupersedeSchema { schema_version: SchemaVersion::new("2.51"), products };
    world.refuse(&supersede, "catalog.no_newer_schema")?;
    world.publish(&data("p", 2, Some(1)).at_schema("2.52"))?;
    equal("what the public sees", world.shown()?, world.editions(&[1, 2])?)?;
    world.commit(&supersede)?;
    equal("what the public sees", world.shown()?, world.editions(&[2])?)?;
    world.is("p", &[(1, Mark::Superseded), (2, Mark::Live)])?;
    world.sound().map(drop)
}

/// Embargo off.
pub(super) fn turning_the_embargo_off_releases_nothing(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    world.publish(&data("p", 1, None).due(place.now()?.plus_ms(-1)))?;
    world.commit(&Operation::Embargo(false))?;
    holds("once more", world.commit(&Operation::Embargo(false))?.already)?;
    equal("what the public sees", world.shown()?, BTreeSet::new())?;
    world.publish(&data("q", 2, None))?;
    equal("what the public sees", world.shown()?, world.editions(&[2])?)?;
    let later = data("r", 3, None).due(place.now()?.plus_ms(HOUR));
    world.refuse_edition(&later, "catalog.release_at_without_embargo")?;
    world.sound().map(drop)
}

/// The release clock; D33.
pub(super) fn a_clock_ahead_of_the_stores_refuses(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    for (ahead_ms, refuses) in [(-HOUR, false), (30_000, false), (10 * 60_000, true)] {
        let clock = Fixed(place.now()?.as_ms() + ahead_ms);
        let outcome = world.writer()?.clock(Arc::new(clock)).commit(&describe(ahead_ms.unsigned_abs()), &by(""));
        let code = outcome.as_ref().err().map(|error| error.code());
        if code != refuses.then_some("catalog.clock_ahead") {
            return Err(differs(&format!("a commit with a clock {ahead_ms} ms ahead"), &outcome, &refuses));
        }
    }
    world.sound().map(drop)
}

/// A clock that stands.
struct Fixed(i64);

impl Clock for Fixed {
    fn now_ms(&self) -> i64 {
        self.0
    }

    fn monotonic_us(&self) -> u64 {
        0
    }

    fn new_id(&self) -> Uuid {
        Uuid::nil()
    }

    fn chance(&self) -> f64 {
        0.0
    }

    fn sleep_ms(&self, _ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}
