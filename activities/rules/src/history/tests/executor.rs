//! Carries out the plans on a catalog in memory, step by step; the process may end after any write or delete.

use std::collections::BTreeSet;

use super::model::*;
use crate::history::*;
use crate::inventory::{Base, Current, Document, History, NextVersion, Root, Segment, SegmentKind, SegmentLine, Seq};
use crate::layout;

impl World {
    pub(super) fn opt_in(&mut self) -> Result<(), Stopped> {
        let head = self.head();
        let fields = |seq: &Seq| match self.store.get(&layout::root(*seq)).map(Root::decode) {
            Some(Ok(root)) if root.has_history() => HistoryFields::Both,
            Some(Ok(_)) => HistoryFields::None,
            Some(Err(_)) | None => HistoryFields::Unreadable,
        };
        let roots = self.store.roots().keys().map(|seq| (*seq, fields(seq))).collect();
        let history = self.store.get(layout::HISTORY).map(|bytes| History::decode(bytes).unwrap());
        match opt_in(&self.catalog(), history.as_ref(), &head, &roots, StoreKind::Memory)? {
            OptIn::Already { .. } => {}
            OptIn::Write { history, catalog } => {
                if let Some(history) = history {
                    self.store.create(layout::HISTORY, history.encode().unwrap())?;
                }
                self.store.put(layout::CATALOG, catalog.encode().unwrap())?;
            }
        }
        Ok(())
    }

    fn advance_current(&mut self) -> Result<(), Crashed> {
        let head = self.head();
        let new = Current { seq: head.seq, root_sha256: self.sha(head.seq), restore_epoch: head.restore_epoch };
        if self.current().as_ref() != Some(&new) {
            self.store.put(layout::CURRENT, new.encode())?;
        }
        Ok(())
    }

    fn write_segments(
        &mut self,
        known: &mut Known,
        drafts: &[SegmentDraft],
        mut previous: Option<SegmentRef>,
    ) -> Result<Option<SegmentRef>, Stopped> {
        for draft in drafts {
            let lines: Result<Vec<SegmentLine>, _> = draft
                .roots
                .iter()
                .map(|root| line_of(root, self.store.get(&layout::root(root.seq)).unwrap()))
                .collect();
            let written = Written {
                catalog_id: CATALOG_ID.parse().unwrap(),
                expired_at: self.now,
                actor: "tester@here".to_owned(),
            };
            let id = self.id();
            let built = draft.build(lines?, previous.as_ref(), id, &written)?;
            self.store.create(&built.at.path, built.bytes)?;
            known.cache.keep_segment(built.facts);
            previous = Some(built.at);
        }
        Ok(previous)
    }

    /// Steps 0 to 8. What it did is what the dry run told.
    pub(super) fn expire(&mut self) -> Result<ExpiryPlan, Stopped> {
        self.advance_current()?;
        let mut known = self.known();
        let (rules, now) = (self.rules, self.now);
        let plan = self.drive(&mut known, |known| plan_expiry(known, &rules, now))?;
        let there: BTreeSet<_> = self.store.leaves().into_keys().collect();
        let forecast = plan.forecast(&there);
        let mut done = Forecast { expired_through: self.history().expired_through, ..Forecast::default() };

        let planned = known.history.clone();
        let newest = self.write_segments(&mut known, &plan.drafts, plan.previous(&planned))?;
        let mut history = planned.clone();
        if let Some(newest) = newest.filter(|_| !plan.choice.candidates.is_empty()) {
            history = history_advanced(&planned, &self.history(), &newest, plan.expired_through)?;
            self.store.put(layout::HISTORY, history.encode().unwrap())?;
            done.expired_through = history.expired_through;
            done.versions.clone_from(&plan.choice.candidates);
            (done.segments_written, done.segments_adopted) = (plan.drafts.len(), plan.adopted.len());
        }
        for delete in &plan.root_deletes {
            if self.store.delete(&delete.path, &delete.etag)? {
                done.roots_deleted.push(delete.seq);
                self.log.push(DeletionLogLine::of_root(delete, "run-1", now));
            }
        }
        let etags = self.store.leaves();
        let mut after = self.known();
        after.cache = known.cache;
        let leaves = self.drive(&mut after, |known| leaf_deletes(known, &plan.header_leaves, &etags))?;
        for delete in leaves {
            if self.store.delete(&delete.path, &delete.etag)? {
                self.log.push(DeletionLogLine::of_leaf(&delete, "run-1", now));
                done.leaves_deleted.push(delete.leaf_sha256);
            }
        }
        if !plan.is_nothing() {
            let cleaned = history_cleaned(&history, &self.history())?;
            self.store.put(layout::HISTORY, cleaned.encode().unwrap())?;
        }
        self.cache = after.cache;
        self.cache.retain(&self.store.roots());
        assert_eq!(done, forecast, "the run did something else than the dry run told");
        Ok(plan)
    }

    /// Lines of every segment that the chain reaches.
    pub(super) fn lines(&self) -> Vec<(SegmentKind, String, SegmentLine)> {
        let mut lines = Vec::new();
        let mut next = self.history().newest_segment;
        while let Some(path) = next {
            let segment = Segment::decode(self.store.get(&path).unwrap_or_else(|| panic!("no {path}"))).unwrap();
            let kind = segment.header.kind;
            lines.extend(segment.lines.into_iter().map(|line| (kind, path.clone(), line)));
            next = segment.header.previous_segment;
        }
        lines
    }

    /// Every segment on the chain, the oldest first.
    pub(super) fn chain(&self) -> Vec<Segment> {
        let mut chain = Vec::new();
        let mut next = self.history().newest_segment;
        while let Some(path) = next {
            let segment = Segment::decode(self.store.get(&path).unwrap()).unwrap();
            next = segment.header.previous_segment.clone();
            chain.push(segment);
        }
        chain.reverse();
        chain
    }

    pub(super) fn plan_restore(&self, to: Seq, confirmed: &[u64]) -> Result<RestorePlan, HistoryRefusal> {
        let asked = RestoreAsked { to, confirmed_unread: confirmed.iter().map(|n| seq(*n)).collect() };
        self.drive(&mut self.known(), |known| plan_restore(known, &asked, self.rules.limits))
    }

    /// A restore on an opted-in catalog, in its order; an unfinished one goes on.
    pub(super) fn restore(&mut self, to: Seq, confirmed: &[u64]) -> Result<RestorePlan, Stopped> {
        let mut known = self.known();
        let asked = RestoreAsked { to, confirmed_unread: confirmed.iter().map(|n| seq(*n)).collect() };
        let limits = self.rules.limits;
        let plan = self.drive(&mut known, |known| plan_restore(known, &asked, limits))?;
        let restore = plan.restore;
        if restore.step <= RestoreStep::WriteSegments {
            let planned = known.history.clone();
            let newest = self.write_segments(&mut known, &plan.drafts, plan.previous(&planned))?;
            let history = history_restored(&planned, &self.history(), &restore, newest.as_ref())?;
            self.store.put(layout::HISTORY, history.encode().unwrap())?;
        }
        if restore.step <= RestoreStep::BumpEpoch {
            let catalog = catalog_restored(&self.catalog(), to, restore.restore_epoch);
            self.store.put(layout::CATALOG, catalog.encode().unwrap())?;
        }
        for delete in &plan.deletes {
            self.store.delete(&delete.path, &delete.etag)?;
        }
        if restore.step <= RestoreStep::WriteRoot {
            let version = self.restored(to, restore.restore_epoch)?;
            self.write(version)?;
        }
        self.advance_current()?;
        Ok(plan)
    }

    fn restored(&self, to: Seq, restore_epoch: u64) -> Result<NextVersion, HistoryRefusal> {
        let (good, sha256) = (self.root(to), self.sha(to));
        let leaves = self.leaves(&good);
        let mut taken = TakenBack::default();
        for (_, _, line) in self.lines().iter().filter(|(_, _, line)| line.seq > to) {
            taken.add_line(line);
        }
        let base = Base::whole(&good, &sha256, &leaves);
        restored_version(&base, &good, &leaves, &taken, restore_epoch, &by("restore"), self.now)
    }
}
