use serde_json::json;

use super::*;
use crate::scripted::{Scripted, now};
use crate::single_steps::version;

const EDITION: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
const OTHER: &str = "01a18e63-e292-7250-a332-b79d9b7a7efd";

fn input(mut fields: serde_json::Value) -> RollbackInput {
    fields["cause"] = json!({"actor": "a", "reason": "r"});
    serde_json::from_value(fields).unwrap()
}

fn up_to_rollback() -> Scripted {
    let moves = json!({"1": [{"from": EDITION, "to": OTHER}], "2": [{"from": OTHER, "to": null}]});
    Scripted::default().answer("rollback_moves", json!({"products": moves})).answer("rollback", version(7))
}

#[test]
fn what_is_taken_back_is_recorded_first_and_what_is_built_on_it_is_told_last() {
    let ripple = json!({"product_id": "1", "edition_id": OTHER, "built_on": EDITION, "state": "embargoed", "fix": "f"});
    let mut ctx = up_to_rollback().answer("find_ripples", json!({"ripples": [ripple]}));
    let output = now(rollback(&mut ctx, input(json!({"products": ["1", "2"], "to": [OTHER]})))).unwrap();
    assert_eq!(ctx.names(), ["rollback_moves", "rollback", "find_ripples"]);
    assert_eq!(ctx.asked[0].1, json!({"products": ["1", "2"], "to": [OTHER]}));
    assert_eq!(ctx.asked[1].1["operation"], "rollback");
    assert_eq!(ctx.asked[1].1["products"]["1"], json!([{"from": EDITION, "to": OTHER}]));
    assert_eq!(ctx.asked[2].1, json!({"withdrawn": {"1": [EDITION], "2": [OTHER]}}));
    assert_eq!((output.version.seq, output.ripples.len(), output.warnings.len()), (7, 1, 0));
}

#[test]
fn a_rollback_that_is_refused_looks_for_nothing() {
    for ctx in [
        Scripted::default().fail("rollback_moves", "catalog.nothing_live"),
        Scripted::default().answer("rollback_moves", json!({"products": {}})).fail("rollback", "catalog.live_changed"),
    ] {
        let mut ctx = ctx;
        let ended = now(rollback(&mut ctx, input(json!({"products": ["1"]}))));
        let Err(Interrupt::Failed(failure)) = ended else { panic!() };
        assert!(failure.code.starts_with("catalog."), "{failure:?}");
        assert!(!ctx.names().contains(&"find_ripples"));
    }
}

#[test]
fn a_rollback_stands_where_the_look_after_it_fails() {
    let mut ctx = up_to_rollback().fail("find_ripples", "edition.io");
    let output = now(rollback(&mut ctx, input(json!({"products": ["1"]})))).unwrap();
    assert_eq!((output.version.seq, output.warnings[0].code.as_str()), (7, "edition.io"));
    let mut ctx = up_to_rollback().suspend("find_ripples");
    assert!(matches!(now(rollback(&mut ctx, input(json!({"products": ["1"]})))), Err(Interrupt::Suspended)));
}
