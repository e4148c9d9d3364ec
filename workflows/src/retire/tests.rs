use serde_json::json;

use super::*;
use crate::scripted::{Scripted, now};
use crate::single_steps::version;

const EDITION: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
const OTHER: &str = "01a18e63-e292-7250-a332-b79d9b7a7efd";

fn input(mut fields: serde_json::Value) -> RetireInput {
    fields["cause"] = json!({"actor": "a", "reason": "r"});
    serde_json::from_value(fields).unwrap()
}

#[test]
fn what_is_old_enough_is_recorded_before_it_is_retired() {
    let found = json!({"editions": {"1": [EDITION], "2": [OTHER]}, "left": 3});
    let mut ctx = Scripted::default().answer("find_retirable", found).answer("retire", version(7));
    let output = now(retire(&mut ctx, input(json!({"products": ["1", "2"]})))).unwrap();
    assert_eq!(ctx.names(), ["find_retirable", "retire"]);
    assert_eq!(ctx.asked[0].1, json!({"products": ["1", "2"]}));
    assert_eq!(ctx.asked[1].1["editions"], json!({"1": [EDITION], "2": [OTHER]}));
    assert_eq!(ctx.asked[1].1["before_window"], false);
    assert_eq!(output.warnings[0].code, "retire.more");
    assert!(output.warnings[0].message.contains('3'), "{output:?}");
}

#[test]
fn what_is_named_is_retired_as_it_is_named() {
    let mut ctx = Scripted::default().answer("retire", version(7));
    let asked = json!({"products": ["1"], "editions": [EDITION], "before_window": true});
    let output = now(retire(&mut ctx, input(asked))).unwrap();
    assert_eq!((ctx.names(), output.warnings.len()), (vec!["retire"], 0));
    assert_eq!(ctx.asked[0].1["editions"], json!({"1": [EDITION]}));
    assert_eq!(ctx.asked[0].1["before_window"], true);
}
