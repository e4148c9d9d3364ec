//! Operations on the Inventory as a person reads them.

use std::collections::BTreeMap;

use catalog_rules::contracts::inventory::{
    AdvanceCurrentOutput, CommitOutput, EditionChange, FindRetirableOutput, FindRipplesOutput, LiveEditionsOutput,
    PreflightOutput, ReadManifestOutput, Ripple, RippleState, RollbackMovesOutput, SettingChange,
};
use catalog_rules::contracts::operations::OperationOutput;
use catalog_rules::ids::ProductId;
use serde_json::Value;

use super::read;
use crate::exit::Exit;
use crate::output::{Output, grouped, moment, short};

/// How many products, and how many refusals, are told one by one.
const TOLD: usize = 30;

/// What a step of an operation has done, in a line.
pub(super) fn summary(step: &str, output: &Value) -> Option<String> {
    match step {
        "advance_current" => read::<AdvanceCurrentOutput>(output).map(|it| format!("version {}", grouped(it.seq))),
        "preflight" => read::<PreflightOutput>(output).map(|it| match it.warnings.len() {
            0 => "nothing stands in the way".to_owned(),
            n => format!("{}, none of which stands in the way", counted(n, "warning")),
        }),
        "rollback_moves" => read::<RollbackMovesOutput>(output).map(|it| {
            let moves = it.products.values().flatten().map(|step| {
                let to = step.to.as_ref().map_or_else(|| "nothing".to_owned(), |to| short(to.as_str()));
                format!("{} back to {to}", short(step.from.as_str()))
            });
            some_of(moves.collect(), "moves")
        }),
        "live_editions" => read::<LiveEditionsOutput>(output)
            .map(|it| some_of(it.if_live.iter().map(|id| format!("{} is live", short(id.as_str()))).collect(), "live")),
        "find_retirable" => read::<FindRetirableOutput>(output)
            .map(|it| format!("{} old enough", counted(it.editions.values().map(|ids| ids.len()).sum(), "edition"))),
        "read_manifest" => read::<ReadManifestOutput>(output)
            .map(|it| format!("manifest sha256 {}…", &it.manifest_sha256.as_str()[..8])),
        "find_ripples" => read::<FindRipplesOutput>(output).map(|it| match it.ripples.len() {
            0 => "nothing is built on what was withdrawn".to_owned(),
            n => format!("{} built on what was withdrawn", counted(n, "edition")),
        }),
        "release_due" => read::<CommitOutput>(output).map(|it| match it.already && it.refused_count == 0 {
            true => format!("nothing is due in version {}", grouped(it.seq)),
            false => version_outcome(&it),
        }),
        _ => read::<CommitOutput>(output).map(|it| version_outcome(&it)),
    }
}

fn some_of(mut texts: Vec<String>, what: &str) -> String {
    const FEW: usize = 3;
    let more = texts.len().saturating_sub(FEW);
    texts.truncate(FEW);
    if more > 0 {
        texts.push(format!("and {more} more {what}"));
    }
    texts.join(", ")
}

fn counted(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(u64::try_from(n).unwrap_or(u64::MAX)))
}

/// What a version did, in a line.
pub fn version_outcome(version: &CommitOutput) -> String {
    let mut parts: Vec<String> =
        version.counts.iter().map(|(state, count)| format!("{} {state}", grouped(*count))).collect();
    parts.extend(version.settings.iter().map(setting));
    if version.refused_count > 0 {
        parts.push(format!("{} refused", grouped(version.refused_count)));
    }
    let seq = grouped(version.seq);
    match (version.already, parts.is_empty()) {
        (true, true) => format!("nothing was to be changed: version {seq} stays"),
        (true, false) => format!("{}: nothing changed, version {seq} stays", parts.join(", ")),
        (false, _) => format!("{} in version {seq}", parts.join(", ")),
    }
}

fn setting(change: &SettingChange) -> String {
    let of = change.product_id.as_ref().map(|product| format!("{product} ")).unwrap_or_default();
    match &change.to {
        Some(to) => format!("{of}{} {to}", change.setting),
        None => format!("{of}{} changed", change.setting),
    }
}

/// Says all that an operation has done but for [`version_outcome`], and gives the exit code: 3 where rules refused all of it.
pub fn tell_operation(out: Output, output: &OperationOutput) -> Exit {
    let version = &output.version;
    tell_changes(out, version);
    for refused in version.refused.iter().take(TOLD) {
        out.line(format!(
            "{}  {} {} stays as it was: {}",
            out.red("refused"),
            refused.product_id,
            short(refused.edition_id.as_str()),
            refused.message
        ));
        out.line(format!("  hint: {}", refused.fix));
    }
    let refused = usize::try_from(version.refused_count).unwrap_or(usize::MAX);
    if refused > TOLD {
        out.line(format!("and {} more refused: jobctl inventory show names them", refused - TOLD));
    }
    tell_ripples(out, &output.ripples);
    for warning in &output.warnings {
        out.line(format!("warning: {}", warning.message));
        out.line(format!("  hint: {}", warning.fix));
    }
    if version.is_all_refused() { Exit::Refused } else { Exit::Done }
}

/// A line for each product: what became of which edition.
fn tell_changes(out: Output, version: &CommitOutput) {
    let mut products: BTreeMap<&ProductId, Vec<&EditionChange>> = BTreeMap::new();
    for change in &version.changes {
        products.entry(&change.product_id).or_default().push(change);
    }
    for (product, changes) in products.iter().take(TOLD) {
        // What was there before comes before what takes its place.
        let mut changes = changes.clone();
        changes.sort_by_key(|change| change.from != Some(catalog_rules::inventory::Mark::Live));
        let changes: Vec<_> = changes.into_iter().map(change).collect();
        out.line(format!("{product}  {}   version {}", changes.join(", "), grouped(version.seq)));
    }
    if products.len() > TOLD {
        out.line(format!("and {} more products: jobctl inventory diff names them", products.len() - TOLD));
    }
}

fn change(change: &EditionChange) -> String {
    let id = short(change.edition_id.as_str());
    let to = change.to.map_or_else(|| "forgotten".to_owned(), |mark| mark.to_string());
    match change.from {
        Some(from) if change.from != change.to => format!("{from} {id} → {to}"),
        Some(from) => match change.release_at {
            Some(at) => format!("{from} {id} until {}", moment(at.as_ms())),
            None => format!("{from} {id} until it is named, no time is set"),
        },
        None => format!("{id} → {to}"),
    }
}

/// The editions that are built on what was taken back, and what to do about each.
fn tell_ripples(out: Output, ripples: &[Ripple]) {
    for (state, one, several) in [
        (
            RippleState::Embargoed,
            "pending edition is built on the withdrawn one and will be refused at release",
            "pending editions are built on a withdrawn one and will be refused at release",
        ),
        (
            RippleState::Sealed,
            "sealed edition is built on the withdrawn one and will not be recorded",
            "sealed editions are built on a withdrawn one and will not be recorded",
        ),
        (
            RippleState::Unsealed,
            "edition is being built, on the withdrawn one if it was begun while that was live, and will be refused then",
            "editions are being built, on a withdrawn one if they were begun while that was live, and will be refused then",
        ),
    ] {
        let found: Vec<_> = ripples.iter().filter(|ripple| ripple.state == state).collect();
        if found.is_empty() {
            continue;
        }
        let ids: Vec<_> = found.iter().map(|ripple| short(ripple.edition_id.as_str())).collect();
        let what = if found.len() == 1 { one } else { several };
        out.line(format!("{} {what}: {}", found.len(), ids.join(", ")));
        for ripple in found {
            out.line(format!("  hint: {}", ripple.fix));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(already: bool, counts: Value, settings: Value, refused_count: u64) -> CommitOutput {
        let version = json!({
            "seq": 4183, "root_sha256": "a".repeat(64), "already": already, "counts": counts, "changes": [],
            "settings": settings, "refused_count": refused_count, "refused": [],
        });
        serde_json::from_value(version).unwrap()
    }

    #[test]
    fn a_version_is_told_in_a_line() {
        let (none, no_settings) = (json!({}), json!([]));
        let live = json!({"live": 215, "superseded": 1214});
        for (version, told) in [
            (version(false, live.clone(), no_settings.clone(), 0), "215 live, 1,214 superseded in version 4,183"),
            (version(false, live, no_settings.clone(), 2), "215 live, 1,214 superseded, 2 refused in version 4,183"),
            (version(true, none.clone(), no_settings.clone(), 0), "nothing was to be changed: version 4,183 stays"),
            (version(true, none.clone(), no_settings, 1), "1 refused: nothing changed, version 4,183 stays"),
            (
                version(false, none.clone(), json!([{"setting": "lifecycle", "product_id": "1", "to": "final"}]), 0),
                "1 lifecycle final in version 4,183",
            ),
            (version(false, none, json!([{"setting": "description"}]), 0), "description changed in version 4,183"),
        ] {
            assert_eq!(version_outcome(&version), told);
            assert_eq!(summary("rollback", &json!(version)).unwrap(), told);
        }
    }

    #[test]
    fn what_a_step_settled_is_told_in_a_line() {
        let [a, b] = ["01a18e76-2bad-7480-abfe-2ba8a6889a45", "01a18e63-e292-7250-a332-b79d9b7a7efd"];
        let moves = json!({"products": {"1": [{"from": a, "to": b}], "2": [{"from": b, "to": null}]}});
        let many: Vec<_> = (0..5).map(|_| json!({"from": a, "to": b})).collect();
        for (step, output, told) in [
            ("rollback_moves", moves, "01a1…889a45 back to 01a1…7a7efd, 01a1…7a7efd back to nothing".to_owned()),
            (
                "rollback_moves",
                json!({"products": {"1": many}}),
                format!("{}and 2 more moves", "01a1…889a45 back to 01a1…7a7efd, ".repeat(3)),
            ),
            ("live_editions", json!({"if_live": [a]}), "01a1…889a45 is live".to_owned()),
            ("find_retirable", json!({"editions": {"1": [a, b]}, "left": 0}), "2 editions old enough".to_owned()),
            ("find_ripples", json!({"ripples": []}), "nothing is built on what was withdrawn".to_owned()),
            ("preflight", json!({"warnings": []}), "nothing stands in the way".to_owned()),
            (
                "release_due",
                json!(version(true, json!({}), json!([]), 0)),
                "nothing is due in version 4,183".to_owned(),
            ),
        ] {
            assert_eq!(summary(step, &output).as_deref(), Some(told.as_str()), "{step}");
        }
        assert_eq!(summary("another", &json!({})), None);
    }
}
