//! The operations of a single step hand the whole intent to it, and its answer on.

use serde_json::{Value, json};

use crate::scripted::{Scripted, now};
use crate::{correct, describe, embargo, reschedule, set_lifecycle, supersede, supersede_schema};

const EDITION: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
const OTHER: &str = "01a18e63-e292-7250-a332-b79d9b7a7efd";

/// What a step that writes a version answers.
pub(crate) fn version(seq: u64) -> Value {
    json!({
        "seq": seq, "root_sha256": "a".repeat(64), "already": false, "counts": {"live": 1}, "changes": [],
        "refused_count": 0, "refused": [],
    })
}

/// Runs the workflow on one answer, and gives the step, what it was asked for, and the version that came of it.
macro_rules! only_step {
    ($workflow:ident, $step:literal, $input:expr) => {{
        let mut ctx = Scripted::default().answer($step, version(7));
        let mut input = $input;
        input["cause"] = json!({"actor": "a", "reason": "r"});
        let output = now($workflow::$workflow(&mut ctx, serde_json::from_value(input).unwrap())).unwrap();
        assert_eq!(output.version.seq, 7);
        assert_eq!(ctx.names(), [$step]);
        let mut asked = ctx.asked[0].1.clone();
        assert_eq!(asked["cause"], json!({"actor": "a", "reason": "r"}));
        asked.as_object_mut().unwrap().remove("cause");
        asked
    }};
}

#[test]
fn each_hands_its_intent_to_one_step() {
    let product = json!({"product_id": "1", "edition_id": EDITION});
    let with = |more: Value| {
        let mut all = product.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    assert_eq!(
        only_step!(supersede, "supersede", with(json!({"by": OTHER}))),
        with(json!({"operation": "supersede", "by": OTHER}))
    );
    let at = "2026-12-04T13:30:00.000000Z";
    assert_eq!(
        only_step!(reschedule, "reschedule", with(json!({"release_at": at}))),
        with(json!({"operation": "reschedule", "release_at": at}))
    );
    assert_eq!(
        only_step!(reschedule, "reschedule", with(json!({"release_at": null}))),
        with(json!({"operation": "reschedule", "release_at": null}))
    );
    assert_eq!(
        only_step!(supersede_schema, "supersede_schema", json!({"schema_version": "2.51", "products": ["1"]})),
        json!({"operation": "supersede_schema", "schema_version": "2.51", "products": ["1"]})
    );
    assert_eq!(
        only_step!(set_lifecycle, "set_lifecycle", json!({"product_id": "1", "lifecycle": "final"})),
        json!({"operation": "set_lifecycle", "product_id": "1", "lifecycle": "final"})
    );
    assert_eq!(only_step!(embargo, "set_embargo", json!({"on": true})), json!({"operation": "embargo", "on": true}));
    let description = json!({"how": "title", "title": {"en": "T"}});
    assert_eq!(
        only_step!(describe, "describe", json!({"description": description})),
        json!({"operation": "describe", "description": description})
    );
    assert_eq!(
        only_step!(correct, "correct", json!({"to": 5, "confirmed_unread": [6, 7]})),
        json!({"operation": "correct", "to": 5, "products": null, "confirmed_unread": [6, 7]})
    );
}
