use serde_json::json;

use super::*;
use crate::scripted::{Scripted, now};
use crate::single_steps::version;

const EDITION: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
const OTHER: &str = "01a18e63-e292-7250-a332-b79d9b7a7efd";

fn input(mut fields: serde_json::Value) -> WithdrawInput {
    fields["cause"] = json!({"actor": "a", "reason": "r"});
    serde_json::from_value(fields).unwrap()
}

#[test]
fn a_named_edition_is_cancelled_in_one_step() {
    let mut ctx = Scripted::default().answer("cancel", version(7));
    let output = now(withdraw(&mut ctx, input(json!({"product_id": "1", "edition_id": EDITION})))).unwrap();
    assert_eq!((ctx.names(), output.version.seq), (vec!["cancel"], 7));
    assert_eq!(ctx.asked[0].1["operation"], "cancel");
    assert_eq!(ctx.asked[0].1["edition_id"], EDITION);
}

#[test]
fn what_is_live_is_recorded_before_it_is_taken_back() {
    let mut ctx = Scripted::default()
        .answer("live_editions", json!({"if_live": [EDITION, OTHER]}))
        .answer("withdraw_live", version(7))
        .answer("find_ripples", json!({"ripples": []}));
    now(withdraw(&mut ctx, input(json!({"product_id": "1"})))).unwrap();
    assert_eq!(ctx.names(), ["live_editions", "withdraw_live", "find_ripples"]);
    assert_eq!(ctx.asked[1].1["if_live"], json!([OTHER, EDITION]));
    assert_eq!(ctx.asked[2].1, json!({"withdrawn": {"1": [OTHER, EDITION]}}));
    let mut ctx = Scripted::default().fail("live_editions", "catalog.nothing_live");
    assert!(matches!(now(withdraw(&mut ctx, input(json!({"product_id": "1"})))), Err(Interrupt::Failed(_))));
    assert_eq!(ctx.names(), ["live_editions"]);
}
