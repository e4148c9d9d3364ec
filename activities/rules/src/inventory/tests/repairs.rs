use super::*;

#[test]
fn each_entry_of_the_journal_is_decided_by_what_is_known_of_its_edition() {
    let sealed = |n: u64, has_manifest: bool| Sealed { edition_id: edition(n), has_manifest };
    // Out of order on purpose: the plan is oldest first.
    let journal =
        [sealed(6, true), sealed(1, true), sealed(2, true), sealed(3, false), sealed(4, true), sealed(5, true)];
    let head = BTreeMap::from([(edition(1), Mark::Live), (edition(2), Mark::Tombstone)]);
    let named = BTreeMap::from([(edition(4), Seq::new(7).unwrap())]);
    let expected = |last: fn(EditionId) -> Repair| {
        vec![
            Repair::Clear { edition: edition(1), mark: Mark::Live },
            Repair::Clear { edition: edition(2), mark: Mark::Tombstone },
            Repair::Unfinished { edition: edition(3) },
            Repair::Gone { edition: edition(4), seq: Seq::new(7).unwrap() },
            last(edition(5)),
            last(edition(6)),
        ]
    };
    assert_eq!(repair_plan(&journal, &head, &named, Mode::Local), expected(|edition| Repair::Record { edition }));
    assert_eq!(repair_plan(&journal, &head, &named, Mode::Server), expected(|edition| Repair::ResumeRun { edition }));
}

#[test]
fn a_withdrawn_edition_is_never_recorded_again() {
    let journal = [Sealed { edition_id: edition(1), has_manifest: true }];
    for mark in [Mark::Embargoed, Mark::Live, Mark::Superseded, Mark::Withdrawn, Mark::Tombstone] {
        let head = BTreeMap::from([(edition(1), mark)]);
        let plan = repair_plan(&journal, &head, &BTreeMap::new(), Mode::Local);
        assert_eq!(plan, [Repair::Clear { edition: edition(1), mark }]);
    }
}

#[test]
fn what_the_journal_does_not_list_is_not_looked_at() {
    let head = BTreeMap::from([(edition(1), Mark::Withdrawn)]);
    assert_eq!(repair_plan(&[], &head, &BTreeMap::new(), Mode::Local), []);
}
