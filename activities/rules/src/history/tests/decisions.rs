//! Opt-in and the gates, as tables.

use std::collections::BTreeMap;

use super::model::*;
use crate::history::*;
use crate::instant::Instant;
use crate::inventory::{Document, FormatVersion, History, Seq};
use crate::layout;

fn fields(of: &[HistoryFields]) -> BTreeMap<Seq, HistoryFields> {
    of.iter().zip(1..).map(|(fields, n)| (seq(n), *fields)).collect()
}

#[test]
fn opt_in_writes_history_before_catalog_json() {
    let world = World::new();
    let (catalog, head) = (world.catalog(), world.head());
    let all = fields(&[HistoryFields::Both]);
    for store in [StoreKind::Local, StoreKind::Azure, StoreKind::Memory] {
        let OptIn::Write { history: Some(history), catalog: new } = opt_in(&catalog, None, &head, &all, store).unwrap()
        else {
            panic!("nothing to write on {store}");
        };
        assert_eq!(
            String::from_utf8(history.encode().unwrap()).unwrap(),
            format!(
                r#"{{"format_version":"1.0","catalog_id":"{CATALOG_ID}","restore_epoch":0,"expired_through":0,"newest_segment":null,"newest_segment_sha256":null,"cleaned_through":null}}"#
            )
        );
        assert_eq!(
            String::from_utf8(new.encode().unwrap()).unwrap(),
            format!(
                r#"{{"format_version":"2.0","catalog_id":"{CATALOG_ID}","restore_epoch":0,"history":{{"since_seq":1}}}}"#
            )
        );
        // Interrupted between the two: only the second is left.
        let again = opt_in(&catalog, Some(&history), &head, &all, store).unwrap();
        assert_eq!(again, OptIn::Write { history: None, catalog: new.clone() });
        // Done: nothing.
        let done = opt_in(&new, Some(&history), &head, &all, store).unwrap();
        assert_eq!(done, OptIn::Already { since_seq: seq(1) });
        let lost = opt_in(&new, None, &head, &all, store).unwrap_err();
        assert_eq!(lost.code(), "catalog.history_missing");
    }
    for store in [StoreKind::S3, StoreKind::Gcs] {
        let refusal = opt_in(&catalog, None, &head, &all, store).unwrap_err();
        assert_eq!(refusal.code(), "history.store_without_lease");
        assert!(refusal.to_string().starts_with("H21: "), "{refusal}");
    }
}

#[test]
fn opt_in_is_refused_when_a_root_without_the_history_fields_follows_one_with_them() {
    use HistoryFields::{Both, None as No, Unreadable};
    let mut world = World::new();
    for _ in 0..3 {
        world.seal("a");
    }
    let (catalog, head) = (world.catalog(), world.head());
    let ask = |of: &[HistoryFields]| opt_in(&catalog, None, &head, &fields(of), StoreKind::Local);
    for (of, since) in [([Both; 4], 1), ([No, No, Both, Both], 3), ([No, No, No, Both], 4)] {
        let Ok(OptIn::Write { catalog, .. }) = ask(&of) else { panic!("{of:?} was refused") };
        assert_eq!(catalog.history.unwrap().since_seq, seq(since));
    }
    for (of, code, words) in [
        (&[Both, No, Both, Both][..], "history.interrupted", "version 2"),
        (&[No, Both, Both, No], "history.interrupted", "version 4"),
        (&[No, No, No, No], "history.head_without_history", "version 4"),
        (&[No, Unreadable, Both, Both], "history.root_damaged", "version 2"),
        (&[Both, Both, Both], "history.root_missing", "version 4"),
    ] {
        let refusal = ask(of).unwrap_err();
        assert_eq!(refusal.code(), code);
        assert!(refusal.to_string().contains(words), "{refusal}");
        assert!(!refusal.fix().is_empty());
    }
}

#[test]
fn opt_in_goes_on_only_with_what_an_opt_in_left_and_never_over_an_unfinished_restore() {
    let world = World::opted_in();
    let history = world.history();
    let mut catalog = world.catalog();
    (catalog.format_version, catalog.history) = (FormatVersion { major: 1, minor: 0 }, None);
    let head = world.head();
    let all = fields(&[HistoryFields::Both]);
    let ask = |history: &History| opt_in(&catalog, Some(history), &head, &all, StoreKind::Local);
    assert!(ask(&history).is_ok());
    let other = "01a18e77-2bad-7480-abfe-2ba8a6889a45".parse().unwrap();
    for (bad, code) in [
        (History { expired_through: 3, ..history.clone() }, "history.foreign"),
        (History { cleaned_through: Some("x".to_owned()), ..history.clone() }, "history.foreign"),
        (History { restore_epoch: 1, ..history.clone() }, "history.foreign"),
        (History { catalog_id: other, ..history.clone() }, "history.other_catalog"),
    ] {
        assert_eq!(ask(&bad).unwrap_err().code(), code);
    }
    let mut restored = catalog.clone();
    restored.restore_epoch = 1;
    let refusal = opt_in(&restored, None, &head, &all, StoreKind::Local).unwrap_err();
    assert_eq!(refusal.code(), "catalog.unfinished_restore");
}

#[test]
fn an_opt_in_that_is_interrupted_is_gone_on_with() {
    let mut world = World::new();
    world.seal("a");
    world.store.writes_left = Some(1);
    assert!(matches!(world.opt_in(), Err(Stopped::Crashed)));
    world.store.writes_left = None;
    assert!(world.store.get(layout::HISTORY).is_some() && world.catalog().format_version.major == 1);
    world.opt_in().unwrap();
    world.opt_in().unwrap();
    assert_eq!(world.catalog().history.as_ref().unwrap().since_seq, seq(1));
    world.check(false);
}

fn pods(groups: &[(&str, bool, &[PodAnswer])]) -> Pods {
    let group = |(deployment, may_be_empty, answers): &(&str, bool, &[PodAnswer])| PodGroup {
        deployment: (*deployment).to_owned(),
        may_be_empty: *may_be_empty,
        pods: answers
            .iter()
            .zip(0..)
            .map(|(answer, n)| Pod { name: format!("{deployment}-{n}"), answer: answer.clone() })
            .collect(),
    };
    Pods::Listed(groups.iter().map(group).collect())
}

#[test]
fn the_pod_check_passes_only_when_every_pod_tells_a_version_with_the_fallback() {
    let version = |text: &str| PodAnswer::Version(text.to_owned());
    let verdict = |answer: PodAnswer| match pod_check(&pods(&[("hot", false, &[version("0.85.0"), answer])]), "0.85.0")
    {
        PodCheck::Passed { pods } => {
            assert_eq!(pods, 2);
            "passed"
        }
        PodCheck::Failed(faults) => {
            assert_eq!(faults.len(), 1);
            assert!(!faults[0].fix().is_empty() && faults[0].to_string().contains("hot-1"), "{}", faults[0]);
            faults[0].code()
        }
        PodCheck::NotRun { why } => panic!("{why}"),
    };
    for good in ["0.85.0", "0.85", "0.85.1", "0.86.0rc1", "1.0", "0.85.0.post1", "0.85.0+local.3", "v0.90.2", "0.100.0"]
    {
        assert_eq!(verdict(version(good)), "passed", "{good}");
    }
    for old in ["0.84.9", "0.85.0rc1", "0.85.0.dev3", "0.85.0a1", "0.9.0", "0+unknown", "0.84.0+0.85.0"] {
        assert_eq!(verdict(version(old)), "gate.pod_old", "{old}");
    }
    for unknown in ["", "unknown", "0..1", "0.85.x", "-1", "0.85.0~1", "0.85.0.final"] {
        assert_eq!(verdict(version(unknown)), "gate.pod_version_unknown", "{unknown:?}");
    }
    assert_eq!(verdict(PodAnswer::NoField), "gate.pod_version_unknown");
    assert_eq!(verdict(PodAnswer::Unreachable("timed out".to_owned())), "gate.pod_unreachable");
    // A label that finds nothing checks nothing.
    for none in [pods(&[("hot", false, &[])]), pods(&[])] {
        let PodCheck::Failed(faults) = pod_check(&none, "0.85.0") else { panic!("no pod passed") };
        assert_eq!(faults[0].code(), "gate.no_pods");
    }
    let empty = pods(&[("hot", false, &[version("1.0")]), ("preview", true, &[])]);
    assert_eq!(pod_check(&empty, "0.85.0"), PodCheck::Passed { pods: 1 });
    let all = pods(&[("hot", false, &[version("0.1")]), ("base", false, &[PodAnswer::NoField, version("0.85")])]);
    let PodCheck::Failed(faults) = pod_check(&all, "0.85.0") else { panic!("passed") };
    assert_eq!(faults.len(), 2, "every fault is told");
}

#[test]
fn both_gates_have_to_be_open_on_a_server_and_a_disk_has_none() {
    let at = |text: &str| text.parse::<Instant>().unwrap();
    let (before, after) = (at("2026-03-01T00:00:00Z"), at("2026-03-02T00:00:00Z"));
    let good = pods(&[("hot", false, &[PodAnswer::Version("1.0".to_owned())])]);
    let bad = pods(&[("hot", false, &[PodAnswer::NoField])]);
    let none = Pods::NoApi("no service account".to_owned());
    let codes = |not_before: Option<Instant>, now: Instant, pods: &Pods| match gates(
        StoreKind::Azure,
        not_before,
        now,
        pods,
        "0.85.0",
    ) {
        Gate::NotNeeded => panic!("a server has gates"),
        Gate::Open(_) => vec![],
        Gate::Closed { faults, .. } => faults.iter().map(GateFault::code).collect(),
    };
    assert_eq!(codes(Some(before), after, &good), Vec::<&str>::new());
    assert_eq!(codes(Some(after), after, &good), Vec::<&str>::new(), "at the time itself");
    assert_eq!(codes(Some(after), before, &good), ["gate.window_open"]);
    assert_eq!(codes(None, after, &good), ["gate.window_unknown"]);
    assert_eq!(codes(Some(after), before, &bad), ["gate.window_open", "gate.pod_version_unknown"]);
    assert_eq!(codes(Some(before), after, &none), Vec::<&str>::new(), "gate 1 alone applies");
    let Gate::Open(check) = gates(StoreKind::Azure, Some(before), after, &none, "0.85.0") else { panic!("closed") };
    assert_eq!(check.to_string(), "the pod check was not run: no service account");
    assert_eq!(gates(StoreKind::Local, None, after, &bad, "0.85.0"), Gate::NotNeeded);
}
