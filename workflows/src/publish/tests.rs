use serde_json::json;

use super::*;
use crate::scripted::{Scripted, now};

const EDITION: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
const PREVIOUS: &str = "01a18e63-e292-7250-a332-b79d9b7a7efd";
const SHA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn input() -> PublishInput {
    serde_json::from_value(json!({
        "product_id": "14100287",
        "source": {"kind": "codr", "files": ["/in/14100287-eng.zip"]},
        "cause": {"actor": "a", "reason": "r"},
    }))
    .unwrap()
}

fn opened() -> Scripted {
    Scripted::default()
        .answer("open", json!({"edition_id": EDITION, "previous": PREVIOUS}))
        .answer("resolve_source", json!({"files": [], "sha256": SHA}))
}

fn up_to_build() -> Scripted {
    opened().answer("build", json!({"rows": 3, "new_files": 1, "new_bytes": 10}))
}

fn up_to_seal() -> Scripted {
    up_to_build().answer(
        "seal",
        json!({"manifest_sha256": SHA, "content_fingerprint": SHA, "table_fingerprints": ["1:3"], "files": 3,
               "hashed": 3, "carried": 0, "rows": 3}),
    )
}

fn checked() -> Scripted {
    up_to_seal().answer("check", json!({"checks": ["manifest"], "fingerprints_recomputed": false}))
}

#[test]
fn the_steps_come_in_the_designs_order_and_hand_identities_on() {
    let mut ctx =
        checked().answer("record", json!({"seq": 2, "state": "live", "superseded": PREVIOUS, "already": false}));
    let output = now(publish(&mut ctx, input())).unwrap();
    assert_eq!(ctx.names(), ["open", "resolve_source", "build", "seal", "check", "record"]);
    assert_eq!((output.seq, output.state.as_str(), output.rows), (2, "live", 3));
    assert_eq!(output.previous.as_ref().map(ToString::to_string).as_deref(), Some(PREVIOUS));
    for (name, asked) in &ctx.asked[2..] {
        assert_eq!(asked["edition_id"], EDITION, "{name}");
    }
    assert_eq!(ctx.asked[5].1["manifest_sha256"], SHA);
}

#[test]
fn a_refusal_before_the_seal_ends_the_run_and_takes_nothing_back() {
    let mut ctx = Scripted::default().fail("open", "catalog.x");
    let Err(Interrupt::Failed(failure)) = now(publish(&mut ctx, input())) else { panic!() };
    assert_eq!(failure.code, "catalog.x");
    assert_eq!(ctx.names(), ["open"]);
}

#[test]
fn a_refusal_at_seal_check_or_record_takes_the_journal_entry_back() {
    for (step, ctx) in [("seal", up_to_build()), ("check", up_to_seal()), ("record", checked())] {
        let mut ctx = ctx.fail(step, "catalog.refused").answer("abandon", json!({"had_entry": true}));
        let Err(Interrupt::Failed(failure)) = now(publish(&mut ctx, input())) else { panic!("{step}") };
        assert_eq!(failure.code, "catalog.refused", "{step}");
        assert_eq!(ctx.names().last(), Some(&"abandon"), "{step}");
    }
}

#[test]
fn a_disk_that_gave_up_takes_nothing_back() {
    for (step, ctx) in [("seal", up_to_build()), ("check", up_to_seal()), ("record", checked())] {
        let mut ctx = ctx.fail_as(step, "store.io", Disposition::Retry);
        let Err(Interrupt::Failed(failure)) = now(publish(&mut ctx, input())) else { panic!("{step}") };
        assert_eq!(failure.code, "store.io", "{step}");
        assert_eq!(ctx.names().last(), Some(&step), "what was sealed stays in the journal for the repair");
    }
}

#[test]
fn the_first_failure_is_told_even_if_taking_back_fails_too() {
    let mut ctx = up_to_seal().fail("check", "catalog.check").fail("abandon", "io");
    let Err(Interrupt::Failed(failure)) = now(publish(&mut ctx, input())) else { panic!() };
    assert_eq!(failure.code, "catalog.check");
}

#[test]
fn a_cancelled_publish_takes_its_seal_back() {
    for (step, ctx) in [("seal", up_to_build()), ("check", up_to_seal()), ("record", checked())] {
        let mut ctx = ctx.cancel(step).answer("abandon", json!({"had_entry": true}));
        assert!(matches!(now(publish(&mut ctx, input())), Err(Interrupt::Cancelled)), "{step}");
        assert_eq!(ctx.names().last(), Some(&"abandon"), "{step}");
    }
    let mut ctx = opened().cancel("build").answer("abandon", json!({"had_entry": false, "discarded": true}));
    assert!(matches!(now(publish(&mut ctx, input())), Err(Interrupt::Cancelled)));
    assert_eq!(ctx.asked.last().unwrap().1["discard_unsealed"], true, "nobody would go on with it");
    let mut ctx = Scripted::default().cancel("open");
    assert!(matches!(now(publish(&mut ctx, input())), Err(Interrupt::Cancelled)));
    assert_eq!(ctx.names(), ["open"], "nothing is sealed yet");
}

#[test]
fn a_cancel_while_a_refusal_is_taken_back_does_not_stop_the_taking_back() {
    let ctx = up_to_build().fail("seal", "catalog.refused").cancel("abandon");
    let mut ctx = ctx.answer("abandon", json!({"had_entry": true}));
    assert!(matches!(now(publish(&mut ctx, input())), Err(Interrupt::Cancelled)));
    assert_eq!(ctx.names().iter().filter(|name| **name == "abandon").count(), 2);
}

#[test]
fn a_suspended_run_asks_for_nothing_more() {
    for (step, ctx) in [("seal", up_to_build()), ("check", up_to_seal()), ("record", checked())] {
        let mut ctx = ctx.suspend(step);
        assert!(matches!(now(publish(&mut ctx, input())), Err(Interrupt::Suspended)));
        assert_eq!(ctx.names().last(), Some(&step));
    }
}
