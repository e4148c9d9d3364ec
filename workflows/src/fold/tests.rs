use std::future::Future;
use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};

use serde_json::json;

use super::*;
use crate::scripted::Scripted;

const EDITION: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
const PREVIOUS: &str = "01a18e63-e292-7250-a332-b79d9b7a7efd";
const SHA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// Runs a future whose every part is ready.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a scripted step waited"),
    }
}

fn input() -> FoldInput {
    serde_json::from_value(json!({
        "product_id": "14100287",
        "overlays": ["/in/a.overlay.json"],
        "audience": "public",
        "cause": {"actor": "a", "reason": "r"},
    }))
    .unwrap()
}

fn opened() -> Scripted {
    let overlay = json!({"path": "/in/a.overlay.json", "size_bytes": 9, "sha256": SHA, "id": "a", "digest": SHA});
    Scripted::default()
        .answer("open", json!({"edition_id": EDITION, "previous": PREVIOUS}))
        .answer("resolve_overlays", json!({"overlays": [overlay]}))
}

fn folded() -> Scripted {
    opened().answer("fold", json!({"changed": 2, "artefacts": [], "applied": 3, "without_target": 0}))
}

fn sealed() -> Scripted {
    folded().answer(
        "seal",
        json!({"manifest_sha256": SHA, "content_fingerprint": SHA, "table_fingerprints": ["1:3"], "files": 3,
               "hashed": 2, "carried": 1, "rows": 3}),
    )
}

fn checked() -> Scripted {
    sealed().answer("check", json!({"checks": ["manifest"], "fingerprints_recomputed": false}))
}

#[test]
fn a_fold_ends_as_a_publish_does_and_says_that_it_is_one() {
    let mut ctx =
        checked().answer("record", json!({"seq": 2, "state": "live", "superseded": PREVIOUS, "already": false}));
    let output = now(fold(&mut ctx, input())).unwrap();
    assert_eq!(ctx.names(), ["open", "resolve_overlays", "fold", "seal", "check", "record"]);
    assert_eq!((output.seq, output.state.as_str(), output.rows, output.changed), (2, "live", 3, 2));
    for (name, asked) in &ctx.asked[2..] {
        assert_eq!(asked["edition_id"], EDITION, "{name}");
    }
    assert_eq!(ctx.asked[1].1, json!({"overlays": ["/in/a.overlay.json"], "audience": "public"}));
    assert_eq!((&ctx.asked[2].1["previous"], &ctx.asked[2].1["audience"]), (&json!(PREVIOUS), &json!("public")));
    assert_eq!(ctx.asked[2].1["overlays"][0]["sha256"], SHA);
    assert_eq!((&ctx.asked[3].1["is_fold"], &ctx.asked[3].1["previous"]), (&json!(true), &json!(PREVIOUS)));
}

#[test]
fn a_refusal_before_the_seal_takes_nothing_back_and_a_later_one_does() {
    for (step, ctx) in [("resolve_overlays", None), ("fold", Some(opened()))] {
        let ctx = ctx.unwrap_or_else(|| {
            Scripted::default().answer("open", json!({"edition_id": EDITION, "previous": PREVIOUS}))
        });
        let mut ctx = ctx.fail(step, "catalog.x");
        let Err(Interrupt::Failed(failure)) = now(fold(&mut ctx, input())) else { panic!("{step}") };
        assert_eq!((failure.code.as_str(), ctx.names().last()), ("catalog.x", Some(&step)));
    }
    for (step, ctx) in [("seal", folded()), ("check", sealed()), ("record", checked())] {
        let mut ctx = ctx.fail(step, "catalog.refused").answer("abandon", json!({"had_entry": true}));
        let Err(Interrupt::Failed(failure)) = now(fold(&mut ctx, input())) else { panic!("{step}") };
        assert_eq!((failure.code.as_str(), ctx.names().last()), ("catalog.refused", Some(&"abandon")), "{step}");
    }
}

#[test]
fn a_cancelled_fold_takes_its_edition_back() {
    for (step, ctx) in [("fold", opened()), ("seal", folded()), ("check", sealed()), ("record", checked())] {
        let mut ctx = ctx.cancel(step).answer("abandon", json!({"had_entry": true}));
        assert!(matches!(now(fold(&mut ctx, input())), Err(Interrupt::Cancelled)), "{step}");
        let (name, asked) = ctx.asked.last().unwrap();
        assert_eq!((*name, &asked["discard_unsealed"]), ("abandon", &json!(true)), "{step}");
    }
}
