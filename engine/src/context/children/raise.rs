//! Carrying out the plan for a family: its children begin, are waited for, and are cleaned up after.

use std::collections::BTreeMap;

use engine_rules::activity::Progress;
use engine_rules::context::Interrupt;
use engine_rules::family::{Begin, Family, FamilyOrder, FamilyPlan, plan_family};
use engine_rules::limits::cut;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Litter, operator};
use crate::context::{End, EngineContext};
use crate::engine::{Mutation, Outcome};
use crate::error::EngineError;
use crate::events::EventKind;
use crate::id::RunId;
use crate::runner::family::{self, Adoption, ChildStanding, Created, Mine, NewChild, Place};
use crate::writer::StepWrite;

/// How often the rows of the children are looked at, in milliseconds, while some are not driven by their parent: they stand
/// in line for a key, another process works on them, a person holds them.
const LOOK_EVERY_MS: u64 = 500;

/// The same once the family is to end: a cancel must arrive within a second.
const LOOK_AT_END_MS: u64 = 200;

/// The same where their parent drives all of them, so that nothing is to be seen but that the parent was taken over; and
/// where so many are open that a look is work by itself.
const LOOK_SELDOM_MS: u64 = 5_000;
const MANY: usize = 1_000;

/// The most children that one transaction records.
const CREATED_AT_ONCE: usize = 256;

/// How often those who watch are told how many have ended at most, in microseconds.
const PROGRESS_EVERY_US: u64 = 50_000;

/// How many blocked children a failure names, and how much of what blocks each, in bytes.
const NAMED: u32 = 10;
const NAMED_BYTES: usize = 300;

/// How a child stands, as its parent last knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kid {
    Here,
    Elsewhere,
    Left,
    InLine,
    MayBegin,
    ToResume,
    Paused,
    Blocked,
}

/// What came of a child that this process drove.
enum Landed {
    Ended,
    Blocked,
    Paused,
    Released,
    /// It is another's, or its row must tell.
    Elsewhere,
    Lost(EngineError),
}

impl Landed {
    fn of(outcome: Result<Outcome, EngineError>) -> Self {
        match outcome {
            // What it gave is in its row.
            Ok(Outcome::Succeeded(_) | Outcome::Failed { .. } | Outcome::Cancelled) => Self::Ended,
            Ok(Outcome::Blocked { .. }) => Self::Blocked,
            Ok(Outcome::Paused) => Self::Paused,
            Ok(Outcome::Released) => Self::Released,
            Ok(Outcome::Fenced) => Self::Elsewhere,
            Err(error) => Self::Lost(error),
        }
    }
}

/// The children that have not ended, and the counts that the plan is made from.
struct Kids {
    open: BTreeMap<u32, (RunId, Kid)>,
    counts: Family,
    /// When the rows were looked at last, by the monotonic clock.
    looked_us: u64,
    /// They are to be looked at now.
    is_due: bool,
    /// Nothing has moved since the last look.
    is_fresh: bool,
    told_us: u64,
    landing: UnboundedSender<(u32, Landed)>,
    landed: UnboundedReceiver<(u32, Landed)>,
}

impl Kids {
    fn new(total: usize, limit: u32) -> Self {
        let (landing, landed) = unbounded_channel();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let counts = Family { total, limit, ..Family::default() };
        Self {
            open: BTreeMap::new(),
            counts,
            looked_us: 0,
            is_due: false,
            is_fresh: false,
            told_us: 0,
            landing,
            landed,
        }
    }

    fn count(&mut self, kid: Kid) -> &mut usize {
        match kid {
            Kid::Here => &mut self.counts.here,
            Kid::Elsewhere => &mut self.counts.elsewhere,
            Kid::Left => &mut self.counts.left,
            Kid::InLine => &mut self.counts.in_line,
            Kid::MayBegin => &mut self.counts.may_begin,
            Kid::ToResume => &mut self.counts.to_resume,
            Kid::Paused => &mut self.counts.paused,
            Kid::Blocked => &mut self.counts.blocked,
        }
    }

    fn set(&mut self, index: u32, run_id: RunId, kid: Kid) {
        self.end(index);
        self.open.insert(index, (run_id, kid));
        *self.count(kid) += 1;
    }

    fn end(&mut self, index: u32) {
        if let Some((_, kid)) = self.open.remove(&index) {
            *self.count(kid) -= 1;
        }
    }

    fn first(&self, kid: Kid, most: usize) -> Vec<(u32, RunId)> {
        let some = self.open.iter().filter(|(_, (_, found))| *found == kid);
        some.take(most).map(|(index, (run_id, _))| (*index, *run_id)).collect()
    }

    /// In how many microseconds the rows are to be looked at.
    fn look_in_us(&self, now_us: u64, is_cancelled: bool) -> u64 {
        let every_ms = match (is_cancelled, self.open.len()) {
            (_, MANY..) => LOOK_SELDOM_MS,
            (true, _) => LOOK_AT_END_MS,
            (false, open) if open == self.counts.here => LOOK_SELDOM_MS,
            (false, _) => LOOK_EVERY_MS,
        };
        if self.is_due { 0 } else { (self.looked_us + every_ms * 1_000).saturating_sub(now_us) }
    }

    /// A child of this process begins, or goes on; how it stands after that comes back as news.
    fn drive(&mut self, index: u32, mine: Mine) {
        self.set(index, mine.run_id(), Kid::Here);
        let landing = self.landing.clone();
        // Of its own, so that it goes on when its parent does not.
        tokio::spawn(async move {
            let landed = Landed::of(mine.carry_out().await);
            let _ = landing.send((index, landed));
        });
    }
}

impl EngineContext {
    /// Starts the children of `litter` and waits until every one has ended.
    ///
    /// # Errors
    /// Where the run stops here: with what that means recorded.
    pub(super) async fn raise(
        &mut self,
        litter: &Litter,
        label: &str,
        place: &Place,
        row: &StepWrite,
        was_begun: bool,
    ) -> Result<(), Interrupt> {
        let mut kids = Kids::new(litter.seeds.len(), litter.limit);
        let mut resumed_by = None;
        if was_begun {
            let (count, next) = family::count(&self.inner, place).await.map_err(|error| self.lost(error))?;
            if count != next {
                return Err(self.missing(label, next.saturating_sub(count)).await);
            }
            kids.counts.created = count;
            self.look(place, &mut kids).await?;
            if self.run.resumed {
                resumed_by = family::who_resumed(&self.inner, place.parent).await.map_err(|error| self.lost(error))?;
                for held in [Kid::Paused, Kid::Blocked] {
                    for (index, run_id) in kids.first(held, usize::MAX) {
                        kids.set(index, run_id, Kid::ToResume);
                    }
                }
            }
        } else {
            kids.looked_us = self.inner.clock.monotonic_us();
        }
        loop {
            while let Ok((index, landed)) = kids.landed.try_recv() {
                self.land(&mut kids, index, landed)?;
            }
            if kids.look_in_us(self.inner.clock.monotonic_us(), self.run.control.is_cancelled()) == 0 {
                self.look(place, &mut kids).await?;
            }
            self.tell_progress(row, label, &mut kids);
            match plan_family(&kids.counts, self.family_order()) {
                FamilyPlan::Begin(begin) => {
                    self.begin(litter, label, place, &mut kids, begin, resumed_by.as_ref()).await?;
                }
                FamilyPlan::CleanUp(most) => self.clean_up(&mut kids, most).await?,
                FamilyPlan::Wait => self.wait_for_children(&mut kids).await?,
                FamilyPlan::Finish => {
                    if !self.look_at_parent(place).await? {
                        return Ok(());
                    }
                }
                FamilyPlan::Block if kids.is_fresh => {
                    let failure = self.blocked_children(label, place, &kids).await?;
                    // A cancel is for the children first.
                    if !self.look_at_parent(place).await? {
                        return Err(self.block(self.new_write(), failure, Some(label.to_owned())).await);
                    }
                }
                FamilyPlan::Block => kids.is_due = true,
                FamilyPlan::Tell => {
                    let ended = kids.counts.created;
                    let why = format!("the run was cancelled; the {ended} children that were started have ended");
                    return Err(self.tell_of_cancel(row.clone(), why).await);
                }
                FamilyPlan::Stop => {
                    if let Some(interrupt) = self.stop_here().await {
                        return Err(interrupt);
                    }
                }
            }
        }
    }

    /// Asks the journal how this run stands, which may know before this process does: whether it is cancelled.
    async fn look_at_parent(&mut self, place: &Place) -> Result<bool, Interrupt> {
        let parent = family::parent(&self.inner, place).await.map_err(|error| self.lost(error))?;
        if parent.is_fenced {
            return Err(self.stop(End::Fenced));
        }
        if parent.is_cancelled {
            self.run.control.cancel();
        }
        Ok(self.run.control.is_cancelled())
    }

    fn family_order(&self) -> FamilyOrder {
        let is_cancelled = self.must_tell_of_cancel();
        if self.inner.draining.is_cancelled() {
            FamilyOrder::Release { is_cancelled }
        } else if is_cancelled {
            FamilyOrder::Cancel
        } else if self.run.control.is_paused() {
            FamilyOrder::Pause
        } else {
            FamilyOrder::GoOn
        }
    }

    /// Lets as many begin as the plan says.
    async fn begin(
        &mut self,
        litter: &Litter,
        label: &str,
        place: &Place,
        kids: &mut Kids,
        begin: Begin,
        resumed_by: Option<&Mutation>,
    ) -> Result<(), Interrupt> {
        kids.is_fresh = false;
        for (kid, most, why, otherwise) in [
            (Kid::Left, begin.left, Adoption::GoOn, Kid::Elsewhere),
            (Kid::MayBegin, begin.may_begin, Adoption::GoOn, Kid::InLine),
            (Kid::ToResume, begin.to_resume, Adoption::Resume(resumed_by), Kid::Elsewhere),
        ] {
            for (index, run_id) in kids.first(kid, most) {
                self.adopt(kids, index, run_id, why, otherwise).await?;
            }
        }
        if begin.create > 0 {
            self.create(litter, label, place, kids, begin.create).await?;
        }
        Ok(())
    }

    async fn create(
        &mut self,
        litter: &Litter,
        label: &str,
        place: &Place,
        kids: &mut Kids,
        most: usize,
    ) -> Result<(), Interrupt> {
        let Some(version) = self.inner.registry.newest_version(litter.workflow) else {
            let failure = operator(
                "engine.definition_missing",
                format!("this program has no workflow {}, which the children of {label} run", litter.workflow),
                "go on with a program that has it: jobctl runs resume RUN",
            );
            return Err(self.block(self.new_write(), failure, Some(label.to_owned())).await);
        };
        let (first, total) = (kids.counts.created, litter.seeds.len());
        let new: Vec<NewChild> = (0..)
            .zip(&litter.seeds)
            .skip(first)
            .take(most.min(CREATED_AT_ONCE))
            .map(|(index, seed)| NewChild {
                index,
                input: seed.input.clone(),
                labels: seed.labels.clone(),
                key: seed.key.clone(),
                reason: format!("child {index} of {total} of {label} of run {}", place.parent),
            })
            .collect();
        let asked = new.len();
        let created = family::create(&self.inner, place, litter.workflow, version, new).await;
        match created.map_err(|error| self.lost(error))? {
            Created::Children(children) if children.len() == asked => {
                kids.counts.created += asked;
                for (index, run_id, mine) in children {
                    match mine {
                        Some(mine) => kids.drive(index, mine),
                        None => kids.set(index, run_id, Kid::InLine),
                    }
                }
                Ok(())
            }
            Created::Children(_) => Err(self.fault("a child that was started twice")),
            Created::ParentCancelled => {
                self.run.control.cancel();
                Ok(())
            }
            Created::ParentFenced => Err(self.stop(End::Fenced)),
        }
    }

    /// A child that this process drove stands otherwise now.
    fn land(&mut self, kids: &mut Kids, index: u32, landed: Landed) -> Result<(), Interrupt> {
        let Some((run_id, Kid::Here)) = kids.open.get(&index).copied() else { return Ok(()) };
        kids.is_fresh = false;
        match landed {
            Landed::Ended => kids.end(index),
            Landed::Blocked => kids.set(index, run_id, Kid::Blocked),
            Landed::Paused => kids.set(index, run_id, Kid::Paused),
            Landed::Released => kids.set(index, run_id, Kid::Left),
            Landed::Elsewhere => kids.set(index, run_id, Kid::Elsewhere),
            Landed::Lost(error) => return Err(self.lost(error)),
        }
        // It may have held the key that another stands in line for.
        if kids.counts.in_line > 0 {
            kids.is_due = true;
        }
        Ok(())
    }

    /// Looks at the rows of those that this process does not drive.
    async fn look(&mut self, place: &Place, kids: &mut Kids) -> Result<(), Interrupt> {
        self.look_at_parent(place).await?;
        let found = family::look(&self.inner, place).await.map_err(|error| self.lost(error))?;
        let mut found: BTreeMap<u32, _> = found.into_iter().map(|(index, run, child)| (index, (run, child))).collect();
        let ended: Vec<u32> = kids
            .open
            .iter()
            .filter(|(index, (_, kid))| *kid != Kid::Here && !found.contains_key(index))
            .map(|(index, _)| *index)
            .collect();
        for index in ended {
            kids.end(index);
        }
        found.retain(|index, _| kids.open.get(index).is_none_or(|(_, kid)| *kid != Kid::Here));
        for (index, (run_id, child)) in found {
            let is_to_resume = kids.open.get(&index).is_some_and(|(_, kid)| *kid == Kid::ToResume);
            let kid = match child {
                ChildStanding::AtWork => Kid::Elsewhere,
                ChildStanding::Left => Kid::Left,
                ChildStanding::InLine => Kid::InLine,
                ChildStanding::MayBegin => Kid::MayBegin,
                ChildStanding::Paused | ChildStanding::Blocked if is_to_resume => Kid::ToResume,
                ChildStanding::Paused => Kid::Paused,
                ChildStanding::Blocked => Kid::Blocked,
            };
            kids.set(index, run_id, kid);
        }
        kids.looked_us = self.inner.clock.monotonic_us();
        kids.is_due = false;
        kids.is_fresh = true;
        Ok(())
    }

    /// The run is to end: children that nobody works on go on here until they end, so that each cleans up.
    async fn clean_up(&mut self, kids: &mut Kids, most: usize) -> Result<(), Interrupt> {
        kids.is_fresh = false;
        let mut left = most;
        for kid in [Kid::Left, Kid::MayBegin, Kid::ToResume, Kid::Paused, Kid::Blocked] {
            let some = kids.first(kid, left);
            left -= some.len();
            for (index, run_id) in some {
                self.adopt(kids, index, run_id, Adoption::End, Kid::Elsewhere).await?;
            }
        }
        Ok(())
    }

    /// Makes the child this run's to drive. Where somebody was faster it stands `otherwise`, until the next look tells.
    async fn adopt(
        &mut self,
        kids: &mut Kids,
        index: u32,
        run_id: RunId,
        why: Adoption<'_>,
        otherwise: Kid,
    ) -> Result<(), Interrupt> {
        match family::adopt(&self.inner, run_id, why).await.map_err(|error| self.lost(error))? {
            Some(mine) => kids.drive(index, mine),
            None => kids.set(index, run_id, otherwise),
        }
        Ok(())
    }

    /// Waits for news: of a child, or of the run itself.
    async fn wait_for_children(&mut self, kids: &mut Kids) -> Result<(), Interrupt> {
        kids.is_fresh = false;
        let inner = self.inner.clone();
        let left_us = kids.look_in_us(inner.clock.monotonic_us(), self.run.control.is_cancelled());
        let is_draining = inner.draining.is_cancelled();
        tokio::select! {
            Some((index, landed)) = kids.landed.recv() => self.land(kids, index, landed)?,
            () = self.run.control.news.notified() => {}
            () = inner.draining.cancelled(), if !is_draining => {}
            () = inner.clock.sleep_ms(left_us.div_ceil(1_000).max(1)) => {}
        }
        Ok(())
    }

    async fn blocked_children(
        &mut self,
        label: &str,
        place: &Place,
        kids: &Kids,
    ) -> Result<engine_rules::failure::Failure, Interrupt> {
        let named = family::blocked(&self.inner, place, NAMED).await.map_err(|error| self.lost(error))?;
        let Family { total, blocked, paused, .. } = kids.counts;
        let mut message = format!("{blocked} of the {total} children of {label} are blocked");
        if paused > 0 {
            message.push_str(&format!(", and {paused} are paused"));
        }
        for (index, run_id, failure) in &named {
            let why = failure.as_ref().map_or_else(String::new, ToString::to_string);
            message.push_str(&format!("\nchild {index}, run {run_id}: {}", cut(why, NAMED_BYTES)));
        }
        if blocked > named.len() {
            message.push_str(&format!("\nand {} more: jobctl runs list --in blocked", blocked - named.len()));
        }
        Ok(operator(
            "engine.child_blocked",
            message,
            "jobctl runs show CHILD says what to do about each; then jobctl runs resume RUN lets this run and its \
             blocked and paused children go on",
        ))
    }

    fn tell_progress(&self, row: &StepWrite, label: &str, kids: &mut Kids) {
        let now_us = self.inner.clock.monotonic_us();
        let done = kids.counts.created - kids.open.len();
        if done < kids.counts.total && now_us.saturating_sub(kids.told_us) < PROGRESS_EVERY_US {
            return;
        }
        kids.told_us = now_us;
        let number = |count| u64::try_from(count).unwrap_or(u64::MAX);
        let progress = Progress { unit: "children", done: number(done), total: Some(number(kids.counts.total)) };
        self.emit(|| EventKind::StepProgress { position: row.position, step: label.to_owned(), progress });
    }
}
