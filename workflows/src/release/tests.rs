use serde_json::json;

use super::*;
use crate::scripted::{Scripted, now};
use crate::single_steps::version;

const EDITION: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";

fn input(mut fields: serde_json::Value) -> ReleaseInput {
    fields["cause"] = json!({"actor": "a", "reason": "r"});
    serde_json::from_value(fields).unwrap()
}

fn prepared() -> Scripted {
    let warning = json!({"code": "retention.x", "message": "m", "fix": "f"});
    Scripted::default().answer("advance_current", json!({"seq": 6})).answer("preflight", json!({"warnings": [warning]}))
}

#[test]
fn what_is_due_or_named_is_released_in_one_version_after_a_look_ahead() {
    for (asked, step, operation) in [
        (json!({}), "release_due", json!({"operation": "release_due"})),
        (
            json!({"products": ["1", "2"]}),
            "release_named",
            json!({"operation": "release_products", "products": ["1", "2"]}),
        ),
        (
            json!({"products": ["1"], "editions": [EDITION]}),
            "release_named",
            json!({"operation": "release_editions", "product_id": "1", "editions": [EDITION]}),
        ),
    ] {
        let mut ctx = prepared().answer(step, version(7));
        let output = now(release(&mut ctx, input(asked))).unwrap();
        assert_eq!(ctx.names(), ["advance_current", "preflight", step]);
        let mut intent = ctx.asked[2].1.clone();
        intent.as_object_mut().unwrap().remove("cause");
        assert_eq!(intent, operation);
        assert_eq!((output.version.seq, output.warnings[0].code.as_str()), (7, "retention.x"));
    }
}

#[test]
fn a_batch_that_refused_everything_has_done_its_work_and_says_so() {
    let refusal = json!({"product_id": "1", "edition_id": EDITION, "code": "catalog.x", "message": "m", "fix": "f"});
    let mut all_refused = version(7);
    all_refused["counts"] = json!({});
    all_refused["refused_count"] = json!(1);
    all_refused["refused"] = json!([refusal]);
    let mut some_refused = all_refused.clone();
    some_refused["counts"] = json!({"live": 1});
    for (answer, is_all_refused) in [(all_refused, true), (some_refused, false), (version(7), false)] {
        let output = now(release(&mut prepared().answer("release_due", answer), input(json!({})))).unwrap();
        assert_eq!(output.version.is_all_refused(), is_all_refused, "{output:?}");
    }
}

#[test]
fn a_clock_that_is_ahead_releases_nothing() {
    let ctx = Scripted::default().answer("advance_current", json!({"seq": 6}));
    let mut ctx = ctx.fail("preflight", "catalog.clock_ahead");
    let Err(Interrupt::Failed(failure)) = now(release(&mut ctx, input(json!({})))) else { panic!() };
    assert_eq!(failure.code, "catalog.clock_ahead");
    assert_eq!(ctx.names(), ["advance_current", "preflight"]);
    let mut ctx = Scripted::default().answer("advance_current", json!({"seq": 6})).cancel("preflight");
    assert!(matches!(now(release(&mut ctx, input(json!({})))), Err(Interrupt::Cancelled)));
}
