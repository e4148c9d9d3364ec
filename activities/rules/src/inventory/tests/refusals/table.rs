//! One row a refusal: the rule, what was found, what was expected, and the fix, as an operation that meets it is told.

use super::*;

/// A refusal and what a person reads. `{3}` stands for edition 3, `{m3}` for the SHA-256 of its manifest.
struct Row {
    variant: &'static str,
    code: &'static str,
    rule: &'static str,
    found: &'static str,
    expected: &'static str,
    fix: &'static str,
}

/// The variants of an enum, and the name of a value's one. The match has no wildcard: with a new variant this does not
/// compile, and once the variant is listed the test below asks for its row and for an operation that meets it.
macro_rules! variants {
    ($list:ident, $name:ident of $refusal:ident: $($variant:ident)*) => {
        const $list: &[&str] = &[$(stringify!($variant)),*];

        fn $name(refusal: &$refusal) -> &'static str {
            match refusal {
                $($refusal::$variant { .. } => stringify!($variant),)*
            }
        }
    };
}

variants!(REFUSALS, refusal_name of Refusal:
    CatalogExpires HistoryMissing UnfinishedRestore BaseExpired ClockAhead ClockBehind NotFastForward SchemaBehind
    ManifestMissing ManifestDiffers CanonicalForm FinalChanged FinalReopened KindDiffers ChainBroken
    RecordedAndRetired ReleaseAtWithoutEmbargo NotAsAtHome PartialWithoutHome PartialWithoutBase
    SharedArtefactDiffers TwoHomes PublishOrder RecordsUnread ManifestUnreadable Invalid MissingLeaf Transition
    Recovery);
variants!(TRANSITIONS, transition_name of TransitionRefusal:
    UnknownProduct UnknownEdition Retired WrongState BuiltOnWithdrawn TwoPending AnotherRegistered NothingEmbargoed
    LiveChanged NothingLive NothingToRollBackTo RollbackSchema RollbackIncomplete NotSameBase NotVerified
    WindowCloses Expunged InsideWindow Cited NoNewerSchema NothingAtSchema FinalWhilePending PendingTooOld
    RegistrationDiffers);
variants!(RECOVERIES, recovery_name of RecoveryRefusal:
    NotOlder TargetUnread UnreadVersions HeadAbsent HeadValid HeadNotNext HeadNewer HeadBuiltOn HeadCommitted
    StillReadable Remains HistoryLost RolledBack Forked);

/// The variant that says it, within the one that only hands it on.
fn name(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Transition(refusal) => transition_name(refusal),
        Refusal::Recovery(refusal) => recovery_name(refusal),
        other => refusal_name(other),
    }
}

/// A row: variant, code, rule; then what was found, what was expected, and the fix.
macro_rules! rows {
    ($($variant:ident $code:literal $rule:literal: $found:literal, $expected:literal, $fix:literal;)*) => {
        const TABLE: &[Row] = &[$(Row {
            variant: stringify!($variant),
            code: $code,
            rule: $rule,
            found: $found,
            expected: $expected,
            fix: $fix,
        },)*];
    };
}

rows! {
    CatalogExpires "catalog.expires" "catalog §6.1":
        "format 2.0", "expected format 1.x",
        "use a jobctl that supports history segments";
    HistoryMissing "catalog.history_missing" "catalog §6.1":
        "inventory/HISTORY is missing", "expected both",
        "restore inventory/HISTORY from a backup";
    UnfinishedRestore "catalog.unfinished_restore" "D15":
        "catalog.json has restore epoch 0, inventory/HISTORY 1, the newest version 0", "expected one epoch",
        "resume that one by jobctl runs resume";
    BaseExpired "catalog.base_expired" "catalog §6.6":
        "version 3 is not above version 3", "expected a newer head",
        "jobctl inventory show";
    ClockAhead "catalog.clock_ahead" "catalog §6.4 (the release clock)":
        "clock reads 2026-10-09T12:31:00.413000Z", "store's, which reads 2026-10-09T12:30:00.412000Z",
        "set this machine's clock";
    ClockBehind "catalog.clock_behind" "catalog §6.6":
        "written at 2026-10-09T12:30:01.413000Z", "this clock, which reads 1970-01-01T00:00:00.000000Z",
        "set this machine's clock";
    NotFastForward "catalog.not_fast_forward" "catalog §6.4 (fast-forward)":
        "edition {4} of p was built on edition {1}", "the live edition is {2} (schema 2.52)",
        "jobctl run publish --product p";
    SchemaBehind "catalog.schema_behind" "catalog §6.4 (fast-forward, D10)":
        "edition {5} of p has store schema 2.40", "live only at newer schemas (edition {2} at 2.52)",
        "jobctl run publish --product p";
    ManifestMissing "catalog.manifest_missing" "catalog §6.5 item 2":
        "edition {3} of p has no manifest", "not sealed",
        "jobctl run publish --product p";
    ManifestDiffers "catalog.manifest_differs" "catalog §6.5 item 2":
        "edition {3} of p has SHA-256 {m9}", "expected {m3}",
        "jobctl edition check";
    CanonicalForm "catalog.canonical_form" "catalog §6.5 item 3":
        "edition {6} of p has canonical form \"2\"", "known: \"1\"",
        "use the jobctl that sealed the edition";
    FinalChanged "catalog.final_changed" "catalog §6.5 item 5":
        "edition {10} has content fingerprint content 10 (form 1)", "its live edition has content 2 (form 1)",
        "jobctl run set-lifecycle --product p --lifecycle revisable";
    FinalReopened "catalog.final_reopened" "catalog §6.5 item 5":
        "edition {10} was sealed as revisable", "product p is final",
        "jobctl run set-lifecycle --product p --lifecycle revisable";
    KindDiffers "catalog.kind_differs" "catalog §6.3":
        "edition {7} is a structure edition", "product p is a data product",
        "jobctl run publish --product ANOTHER_ID";
    ChainBroken "catalog.chain_broken" "catalog §6.5 item 6":
        "edition {2} of p was built on {1}", "neither recorded nor retired",
        "jobctl run publish --product p";
    RecordedAndRetired "catalog.recorded_and_retired" "catalog §6.2":
        "edition {2} of p would be superseded", "and have a tombstone",
        "jobctl run reinstate --product p --edition {2}";
    ReleaseAtWithoutEmbargo "catalog.release_at_without_embargo" "catalog §6.4":
        "edition {8} of p is to be released at 2026-10-10T12:30:00.412000Z", "embargo off",
        "jobctl run embargo on";
    NotAsAtHome "catalog.not_as_at_home" "catalog §6.5 item 4":
        "edition {4} of q holds urn:cl with fingerprint f0", "structure product s, holds it with f1",
        "jobctl run publish --product q";
    PartialWithoutHome "catalog.partial_without_home" "catalog §6.5 item 4":
        "edition {9} of q holds a part of urn:cl", "structure product holds the whole",
        "publish the structure product that holds urn:cl first";
    PartialWithoutBase "catalog.partial_without_base" "catalog §6.5 item 4":
        "edition {2} of p holds a part of urn:sdmx:", "without partial_of",
        "jobctl run publish --product p";
    SharedArtefactDiffers "catalog.shared_artefact_differs" "catalog §6.5 item 4":
        "edition {3} of q holds urn:dsd with fingerprint d2", "live edition {1} of p holds it with d1",
        "jobctl run release --product q --product p";
    TwoHomes "catalog.two_homes" "catalog §6.5 item 7":
        "edition {5} of structure product t holds urn:cl", "whose home is structure product s",
        "take urn:cl out of t";
    PublishOrder "catalog.publish_order" "catalog §6.5 item 8":
        "edition {2} of p needs urn:cl at fingerprint f1 live", "only embargoed, in edition {1}",
        "jobctl run release --product s";
    RecordsUnread "catalog.records_unread" "catalog §6.5":
        "edition {1} of p has no artefact records", "its manifest could not be read",
        "restore products/p/{1}/manifest.json";
    ManifestUnreadable "catalog.manifest_unreadable" "catalog §6.5 item 3":
        "the manifest of edition {1} of p cannot be read", "expected manifest format 3.x",
        "use the jobctl that sealed the edition";
    Invalid "catalog.invalid_version" "":
        "missing field `format_version`", "valid Inventory root",
        "report it with this message";
    MissingLeaf "catalog.missing_leaf" "":
        "of product p", "is needed",
        "report it with this message";
    UnknownProduct "catalog.unknown_product" "catalog §6.3":
        "no product nobody", "expected one that",
        "jobctl inventory products";
    UnknownEdition "catalog.unknown_edition" "catalog §6.4":
        "no edition {9} of p", "in any state or as a tombstone",
        "jobctl inventory product p";
    Retired "catalog.retired" "catalog §6.4":
        "edition {2} of p was retired at 2026-", "expected embargoed, to be cancelled",
        "jobctl run reinstate --product p --edition {2}";
    WrongState "catalog.wrong_state" "catalog §6.4":
        "edition {2} of p is live", "expected embargoed, to be cancelled",
        "jobctl run rollback --product p";
    BuiltOnWithdrawn "catalog.built_on_withdrawn" "catalog §6.4 (fast-forward after a rollback)":
        "edition {3} of p was built on edition {2}, which was withdrawn", "expected the live edition {1} (schema 2.52)",
        "jobctl edition discard {3} --product p";
    TwoPending "catalog.two_pending" "catalog §11.2":
        "edition {2} of p and edition {3} were both built on edition {1} at schema 2.52", "expected one of them",
        "jobctl run supersede --product p --edition {2} --by {3}";
    AnotherRegistered "catalog.another_registered" "D20":
        "edition {7} of p is registered", "expected no other registration when edition {8}",
        "jobctl run drop-pending --product p --edition {7}";
    NothingEmbargoed "catalog.nothing_embargoed" "catalog §6.4 (release)":
        "no edition of p is embargoed", "nothing to release",
        "jobctl inventory product p";
    LiveChanged "catalog.live_changed" "catalog §6.4 (if_live)":
        "p has live {2}", "expected {1}",
        "jobctl inventory product p";
    NothingLive "catalog.nothing_live" "catalog §6.4":
        "no edition of p is live", "expected one to take back",
        "jobctl run publish --product p";
    NothingToRollBackTo "catalog.nothing_to_roll_back_to" "catalog §6.4 (rollback)":
        "p has live {1}", "no superseded edition to go back to",
        "jobctl run withdraw --product p --live";
    RollbackSchema "catalog.rollback_schema" "catalog §6.4 (rollback)":
        "edition {3} of p has schema 2.52", "expected one of the schema that is rolled back",
        "jobctl run rollback --product p";
    RollbackIncomplete "catalog.rollback_incomplete" "D22":
        "it was asked for {4}", "all live editions of p in one version: {2}, {4}",
        "jobctl run rollback --product p";
    NotSameBase "catalog.not_same_base" "catalog §6.4 (supersede)":
        "edition {4} of p was built on {1}, and edition {2} on {1}", "at one schema version",
        "jobctl run withdraw --product p --edition {2}";
    NotVerified "catalog.not_verified" "catalog §6.4 (reinstate)":
        "edition {2} of p does not verify: a file is gone", "expected its manifest and every listed file",
        "restore products/p/{2}";
    WindowCloses "catalog.window_closes" "D30":
        "edition {2} of p was retired at 2026-", "expected more than one day left",
        "jobctl run publish --product p";
    Expunged "catalog.expunged" "D29":
        "edition {2} of p was expunged", "expected one whose bytes are there",
        "jobctl run publish --product p";
    InsideWindow "catalog.inside_window" "catalog §6.4 (retention)":
        "edition {2} of p is withdrawn since 2026-10-09", "expected an instant past it",
        "jobctl run retire --product p --edition {2} --before-window";
    Cited "catalog.cited" "catalog §11.4":
        "edition {2} of p holds a part of urn:cl that was cut from edition {1}", "expected no live or embargoed edition that cites it",
        "jobctl run publish --product p";
    NoNewerSchema "catalog.no_newer_schema" "D27 (supersede-schema)":
        "edition {2} of p is live at schema 2.52", "live at a newer one",
        "jobctl run publish --product p";
    NothingAtSchema "catalog.nothing_at_schema" "D27 (supersede-schema)":
        "no edition is live at schema 1.0", "expected a schema that is live",
        "jobctl inventory products";
    FinalWhilePending "catalog.final_while_pending" "catalog §6.5 item 5":
        "{2}, {3}", "expected no edition that waits",
        "jobctl run release --product p";
    PendingTooOld "catalog.pending_too_old" "catalog §11.2":
        "pending edition {1} of p was minted at 2026-", "before the tombstone window that began at 2026-",
        "jobctl run drop-pending --product p --edition {1}";
    RegistrationDiffers "catalog.registration_differs" "D19":
        "edition {1} of p has kind structure", "expected data",
        "jobctl run drop-pending --product p --edition {1}";
    NotOlder "catalog.correct_not_older" "catalog §6.2 (correct)":
        "version 9 is no older version than 3", "expected a lower one",
        "jobctl inventory log";
    TargetUnread "catalog.correct_target_unread" "catalog §6.2 (correct)":
        "version 2 cannot be read", "expected a known-good version",
        "jobctl inventory log";
    UnreadVersions "catalog.unread_versions" "D14":
        "versions 3 after 2 cannot be read", "expected each of them to be confirmed",
        "jobctl run correct --to 2 --confirm-unread 3";
    HeadAbsent "catalog.head_absent" "D16":
        "no root of version 4", "expected the damaged one that follows version 3",
        "jobctl inventory show";
    HeadValid "catalog.head_valid" "D16":
        "version 3 is valid", "only a root that fails validation is deleted",
        "jobctl verify";
    HeadNotNext "catalog.head_not_next" "D16":
        "version 5 does not follow version 3", "expected 4",
        "jobctl run repair-head --seq 4";
    HeadNewer "catalog.head_newer" "D16":
        "version 3 has format 2.0", "not damaged",
        "use the newer jobctl";
    HeadBuiltOn "catalog.head_built_on" "D16":
        "version 4 after 3 is valid", "expected no valid version after it",
        "jobctl verify";
    HeadCommitted "catalog.head_committed" "D16":
        "version 3 was committed, and its root has SHA-256 e3b0c442", "expected a version that was never committed",
        "jobctl run repair-head --seq 3 --confirm-committed --reason";
    StillReadable "catalog.still_readable" "catalog §6.7 (rebuild-inventory)":
        "version 1 is valid", "expected an Inventory without a valid version",
        "jobctl run repair-head";
    Remains "catalog.inventory_remains" "catalog §6.7 (rebuild-inventory)":
        "inventory/000000000001.json", "expected none",
        "restore inventory/ from a backup";
    HistoryLost "catalog.history_lost" "catalog §6.7 (rebuild-inventory)":
        "the history of versions 1 to 3 would be lost", "expected a catalog that was never rolled back",
        "jobctl run rebuild-inventory --lost-through 3";
    RolledBack "catalog.rolled_back" "catalog §6.7 (rebuild-inventory)":
        "edition {2} of p was withdrawn", "expected a catalog that was never rolled back",
        "restore inventory/ from a backup";
    Forked "catalog.forked" "catalog §6.7 (rebuild-inventory)":
        "editions {1}, {2} of p were built on the same edition", "expected one chain of editions",
        "out of products/p";
}

/// `text` with the editions and hashes that its placeholders stand for.
fn filled(text: &str) -> String {
    (1..=10).fold(text.to_owned(), |text, n| {
        let text = text.replace(&format!("{{{n}}}"), edition(n).as_str());
        text.replace(&format!("{{m{n}}}"), manifest_sha256(n).as_str())
    })
}

impl Row {
    /// Whether `message` and `fix` say what the row holds.
    fn is_told(&self, message: &str, fix: &str) -> bool {
        let parts = [(message, self.found), (message, self.expected), (fix, self.fix)];
        message.starts_with(self.rule) && parts.iter().all(|(text, part)| text.contains(&filled(part)))
    }
}

#[test]
fn every_refusal_is_met_by_an_operation_and_says_rule_finding_expectation_and_fix() {
    let of = |refusal: Refusal| (Some(name(&refusal)), refusal.code().to_owned(), refusal.to_string(), refusal.fix());
    // What a fold refuses is data.
    let folded = of_folds().into_iter().map(|refused| (None, refused.code, refused.message, refused.fix));
    let met: Vec<_> = met().into_iter().map(of).chain(folded).collect();

    let handed_on = ["Transition", "Recovery"];
    let variants = [REFUSALS, TRANSITIONS, RECOVERIES].concat();
    let variants: Vec<_> = variants.into_iter().filter(|variant| !handed_on.contains(variant)).collect();
    let rows: Vec<_> = TABLE.iter().map(|row| row.variant).collect();
    assert_eq!(rows, variants, "a row for each variant, in their order");
    let codes: BTreeSet<_> = TABLE.iter().map(|row| row.code).collect();
    assert_eq!(codes.len(), TABLE.len(), "two refusals with one code");

    for row in TABLE {
        let told: Vec<_> = met.iter().filter(|(_, code, ..)| code == row.code).collect();
        assert!(!told.is_empty(), "no operation meets {}", row.variant);
        assert!(
            told.iter().all(|(name, ..)| name.is_none_or(|name| name == row.variant)),
            "{} has another code",
            row.variant
        );
        let fault_of_ours = row.rule.is_empty();
        assert_eq!(fault_of_ours, ["Invalid", "MissingLeaf"].contains(&row.variant), "{} names no rule", row.variant);
        assert!(told.iter().any(|(.., message, fix)| row.is_told(message, fix)), "{} says {told:?}", row.variant);
    }
    let strangers: Vec<_> = met.iter().filter(|(_, code, ..)| !codes.contains(code.as_str())).collect();
    assert!(strangers.is_empty(), "codes without a row: {strangers:?}");
}
