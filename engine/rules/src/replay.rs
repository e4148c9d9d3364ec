//! Which recorded results of a run carry over to the run that replays it from a step (DESIGN §2.2, Replay).
//!
//! A replaying run asks for its steps like any run. What it asks for is looked up, by content, among the results that the
//! origin recorded before the step that the replay begins at; what is found there is carried over and not carried out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::position::Position;

/// The kind of the row that begins a section.
const SECTION: &str = "section";
/// The kind of the row that ends one.
const SECTION_END: &str = "section_end";

/// Something that the origin asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its place in the origin.
    pub position: Position,
    /// Its kind, as the journal holds it.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The section that it belongs to, begins or ends.
    pub section: Option<String>,
    /// The digest of its input.
    pub input_digest: String,
    /// Whether it has a result of its own: one that only tells that the run was cancelled there is none.
    pub has_result: bool,
}

/// A step whose output names something new each time that it is carried out, such as the id of an edition, and the step
/// after which that name stands for something that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mint {
    /// The step that mints the identity.
    pub minting_step: String,
    /// The step that uses it up.
    pub used_up_at_step: String,
}

/// What becomes of something that a replaying run asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The result at this index of the origin's rows is carried over.
    Carry(usize),
    /// It is carried out anew, because the replay begins at or before the step that uses up what it mints. The origin's
    /// row is at this index.
    Mint(usize),
    /// It is carried out: the origin did not ask for it before the step that the replay begins at.
    New,
    /// It is carried out, and so is all that follows: the origin asked for it with another input, at this index. What
    /// comes later may rest on what it does and not say so in its input.
    Differs(usize),
    /// It is carried out, like all that follows what differs.
    Over,
}

/// The results of an origin, as they are carried over one after the other.
#[derive(Debug, Clone)]
pub struct Carrying {
    rows: Vec<Held>,
    used: Vec<bool>,
    /// What can still be carried over, by kind and name, in the order of the places.
    open: BTreeMap<(String, String), VecDeque<usize>>,
    anew: Vec<String>,
    kept: Vec<Mint>,
    is_over: bool,
}

impl Carrying {
    /// Carries over what `rows`, in the order of their places, hold before `before_top`. An identity is minted anew where
    /// the replay begins at or before the step that uses it up, also where the origin never came to that step.
    #[must_use]
    pub fn new(rows: Vec<Held>, before_top: u32, mints: &[Mint]) -> Self {
        let is_used_up = |mint: &Mint| {
            let used_up = rows.iter().find(|row| row.name == mint.used_up_at_step);
            used_up.is_some_and(|row| row.position.top < before_top)
        };
        let (kept, anew): (Vec<_>, Vec<_>) = mints.iter().cloned().partition(is_used_up);
        let ended: BTreeSet<(u32, u32)> = rows
            .iter()
            .filter(|row| row.kind == SECTION_END)
            .map(|row| (row.position.top, row.position.iteration))
            .collect();
        let mut open: BTreeMap<_, VecDeque<_>> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            // A step outside a section, or the beginning of a section that ended, which stands for all of it.
            let is_whole = match row.kind.as_str() {
                SECTION => ended.contains(&(row.position.top, row.position.iteration)),
                SECTION_END => false,
                _ => row.section.is_none(),
            };
            if is_whole && row.has_result && row.position.top < before_top {
                open.entry((row.kind.clone(), row.name.clone())).or_default().push_back(index);
            }
        }
        let used = vec![false; rows.len()];
        let anew = anew.into_iter().map(|mint| mint.minting_step).collect();
        Self { rows, used, open, anew, kept, is_over: false }
    }

    /// What becomes of the next thing that the run asks for outside a section; the beginning of a section stands for all
    /// of it. To be asked for everything in turn, also for what the run has recorded itself.
    pub fn asked(&mut self, kind: &str, name: &str, input_digest: &str) -> Verdict {
        if self.is_over {
            return Verdict::Over;
        }
        let Some(same) = self.open.get_mut(&(kind.to_owned(), name.to_owned())) else { return Verdict::New };
        let Some(&first) = same.front() else { return Verdict::New };
        if self.anew.iter().any(|step| step == name) {
            same.pop_front();
            return Verdict::Mint(first);
        }
        match same.iter().position(|index| self.rows[*index].input_digest == input_digest) {
            Some(at) => {
                let index = same.remove(at).unwrap_or(first);
                self.used[index] = true;
                Verdict::Carry(index)
            }
            None => {
                self.is_over = true;
                Verdict::Differs(first)
            }
        }
    }

    /// An identity that was carried over and that the origin used up at or after the row at `index`, which is now carried
    /// out anew: what follows would be done to something that exists already.
    #[must_use]
    pub fn used_up_after(&self, index: usize) -> Option<&Mint> {
        let place = self.rows.get(index)?.position;
        self.kept.iter().find(|mint| {
            let named = |step: &str| self.rows.iter().position(|row| row.name == step);
            let is_carried = named(&mint.minting_step).is_some_and(|row| self.used[row]);
            is_carried && named(&mint.used_up_at_step).is_some_and(|row| self.rows[row].position >= place)
        })
    }

    /// The rows of the section that begins at `index`, itself among them.
    pub fn section(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let place = self.rows.get(index).map(|row| (row.position.top, row.position.iteration));
        (0..self.rows.len()).filter(move |row| {
            let position = self.rows[*row].position;
            Some((position.top, position.iteration)) == place
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(position: Position, kind: &str, name: &str, digest: &str) -> Held {
        let section = (position.sub > 0 || kind == SECTION).then(|| "locked".to_owned());
        Held {
            position,
            kind: kind.to_owned(),
            name: name.to_owned(),
            section,
            input_digest: digest.to_owned(),
            has_result: true,
        }
    }

    fn step(top: u32, name: &str, digest: &str) -> Held {
        held(Position::top(top), "activity", name, digest)
    }

    fn publish() -> Vec<Held> {
        let names = ["open", "resolve_source", "build", "seal", "check", "record"];
        names.iter().zip(1..).map(|(name, top)| step(top, name, name)).collect()
    }

    fn mints() -> [Mint; 1] {
        [Mint { minting_step: "open".to_owned(), used_up_at_step: "seal".to_owned() }]
    }

    /// The verdicts on what a publish asks for, a letter each, where `changed` have another input than the origin's.
    fn verdicts(before_top: u32, changed: &[&str]) -> String {
        let mut carrying = Carrying::new(publish(), before_top, &mints());
        let mut letters = String::new();
        for name in publish().iter().map(|row| row.name.clone()) {
            let digest = if changed.contains(&name.as_str()) { "another" } else { name.as_str() };
            letters.push(match carrying.asked("activity", &name, digest) {
                Verdict::Carry(_) => 'c',
                Verdict::Mint(_) => 'm',
                Verdict::New => 'n',
                Verdict::Differs(_) => 'd',
                Verdict::Over => 'o',
            });
        }
        letters
    }

    #[test]
    fn what_stands_before_the_step_is_carried_and_an_identity_is_minted_until_it_is_used_up() {
        // What holds the new id differs by itself.
        let with_id = &["build", "seal", "check", "record"];
        for (before_top, changed, expected) in [
            (1, &[][..], "nnnnnn"),
            (2, &[], "mnnnnn"),
            (3, with_id, "mcnnnn"),
            (4, with_id, "mcdooo"),
            (5, &[], "ccccnn"),
            (6, &[], "cccccn"),
            // Who replays is another than who began: that alone does not make the rest differ.
            (4, &["open", "build"], "mcdooo"),
            // The seal does not name the source: what follows a difference is never carried.
            (5, &["resolve_source", "build"], "cdoooo"),
        ] {
            assert_eq!(verdicts(before_top, changed), expected, "before {before_top}, changed {changed:?}");
        }
    }

    #[test]
    fn an_identity_that_was_used_up_is_told_of_where_what_comes_before_its_use_differs() {
        let mut carrying = Carrying::new(publish(), 5, &mints());
        assert_eq!(carrying.asked("activity", "open", "open"), Verdict::Carry(0));
        assert_eq!(carrying.asked("activity", "resolve_source", "another"), Verdict::Differs(1));
        assert_eq!(carrying.used_up_after(1), Some(&mints()[0]));
        assert_eq!(carrying.used_up_after(4), None, "after its use a difference is none to it");
        let mut minted = Carrying::new(publish(), 4, &mints());
        assert_eq!(minted.asked("activity", "open", "open"), Verdict::Mint(0));
        assert_eq!(minted.used_up_after(1), None);
    }

    #[test]
    fn another_order_and_a_step_that_the_origin_did_not_know_do_not_end_the_carrying() {
        let mut carrying = Carrying::new(publish(), 5, &[]);
        assert_eq!(carrying.asked("activity", "resolve_source", "resolve_source"), Verdict::Carry(1));
        assert_eq!(carrying.asked("activity", "probe", "probe"), Verdict::New);
        assert_eq!(carrying.asked("activity", "open", "open"), Verdict::Carry(0));
        assert_eq!(carrying.asked("signal", "build", "build"), Verdict::New, "of another kind");
        assert_eq!(carrying.asked("activity", "build", "build"), Verdict::Carry(2));
    }

    #[test]
    fn each_result_is_carried_once_in_its_order() {
        let rows = vec![
            held(Position::top(1), "now", "now", ""),
            held(Position::top(2), "new_id", "new_id", ""),
            held(Position::top(3), "now", "now", ""),
            held(Position::top(4), "fan_out", "parts", "1"),
            held(Position::top(5), "now", "now", ""),
        ];
        let mut carrying = Carrying::new(rows.clone(), 5, &[]);
        assert_eq!(carrying.asked("now", "now", ""), Verdict::Carry(0));
        assert_eq!(carrying.asked("now", "now", ""), Verdict::Carry(2));
        assert_eq!(carrying.asked("now", "now", ""), Verdict::New, "the third stands after the step");
        assert_eq!(carrying.asked("fan_out", "parts", "1"), Verdict::Carry(3), "with its recorded ends");
        let mut from_before = Carrying::new(rows, 4, &[]);
        assert_eq!(from_before.asked("fan_out", "parts", "1"), Verdict::New, "its children run anew");
    }

    #[test]
    fn a_section_is_carried_whole_or_not_at_all() {
        let place = |iteration, sub| Position { top: 1, iteration, sub };
        let ended = vec![
            held(place(2, 0), SECTION, "locked", "s"),
            held(place(2, 1), "activity", "first", "1"),
            held(place(2, 2), SECTION_END, "locked", ""),
            step(2, "third", "3"),
        ];
        let mut carrying = Carrying::new(ended.clone(), 2, &[]);
        assert_eq!(carrying.asked("activity", "first", "1"), Verdict::New, "never a step of it alone");
        assert_eq!(carrying.asked(SECTION, "locked", "s"), Verdict::Carry(0));
        assert_eq!(carrying.section(0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(Carrying::new(ended.clone(), 1, &[]).asked(SECTION, "locked", "s"), Verdict::New);
        let open = ended[..2].to_vec();
        assert_eq!(Carrying::new(open, 2, &[]).asked(SECTION, "locked", "s"), Verdict::New);
    }

    #[test]
    fn what_has_no_result_of_its_own_is_carried_out() {
        let mut rows = publish();
        rows[1].has_result = false;
        let mut carrying = Carrying::new(rows, 5, &[]);
        assert_eq!(carrying.asked("activity", "resolve_source", "resolve_source"), Verdict::New);
    }
}
