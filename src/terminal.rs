//! A run as a person watches it: a line a step, and on a terminal a moving line for the step at work.

mod operation;

use std::time::Duration;

use catalog_rules::contracts::fold::{FoldStepOutput, ResolveOverlaysOutput};
use catalog_rules::contracts::publish::{
    BuildOutput, CheckOutput, OpenOutput, RecordOutput, ResolveSourceOutput, SealOutput,
};
use engine::{Event, EventKind};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use operation::{tell_operation, version_outcome};

use crate::cli::recovery::recovered;
use crate::output::{Output, duration, grouped, short, size};

const NAME_WIDTH: usize = 17;

/// Shows the events of one run.
pub struct Watcher {
    out: Output,
    run_id: String,
    bar: Option<ProgressBar>,
}

impl Watcher {
    /// A watcher of `run_id`.
    pub fn new(out: Output, run_id: String) -> Self {
        Self { out, run_id, bar: None }
    }

    /// Shows one event; events of other runs are passed over.
    pub fn show(&mut self, event: &Event) {
        if event.run_id.to_string() != self.run_id {
            return;
        }
        match &event.kind {
            EventKind::RunStarted { .. } | EventKind::RunEnded { .. } => self.clear(),
            EventKind::RunTakenOver { .. } => self.out.line("  taken up where it was interrupted"),
            EventKind::StepReplayed { step, duration_us, carried_from, .. } => {
                let what = carried_from.as_ref().map(|maker| format!("carried over from {}", short(maker)));
                let what = what.as_deref().unwrap_or("recorded before");
                self.step(step, &duration_us.map(duration).unwrap_or_default(), what);
            }
            EventKind::StepStarted { step, .. } => self.begin(step),
            EventKind::StepProgress { progress, .. } => self.progress(progress.done, progress.total, progress.unit),
            EventKind::StepSucceeded { step, duration_us, output, .. } => {
                self.step(step, &duration(*duration_us), &summary(step, output));
                for finding in findings(step, output) {
                    self.out.line(format!("    note: {finding}"));
                }
            }
            EventKind::StepRetrying { step, duration_us, failure, delay_ms, attempt, .. } => {
                let what = format!(
                    "attempt {attempt} failed, again in {}: {}",
                    duration(delay_ms.saturating_mul(1000)),
                    failure.message
                );
                self.step(step, &duration(*duration_us), &what);
            }
            EventKind::StepFailed { step, duration_us, .. } => {
                let failed = self.out.red("failed");
                self.step(step, &duration(*duration_us), &failed);
            }
        }
    }

    /// Moves the line of the step at work.
    pub fn progress(&self, done: u64, total: Option<u64>, unit: &str) {
        let Some(bar) = &self.bar else { return };
        if let Some(total) = total {
            bar.set_style(style_with_bar());
            bar.set_length(total);
            bar.set_position(done);
        }
        bar.set_message(format!("{} {unit}", grouped(done)));
    }

    /// Ends the moving line.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn begin(&mut self, step: &str) {
        self.clear();
        if self.out.is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            bar.set_style(style_without_bar());
            bar.set_prefix(format!("  {step:<NAME_WIDTH$}"));
            bar.enable_steady_tick(Duration::from_millis(120));
            self.bar = Some(bar);
        }
    }

    /// A line for a step: its name, its time and what became of it.
    pub fn step(&mut self, step: &str, time: &str, what: &str) {
        self.clear();
        self.out.line(format!("  {step:<NAME_WIDTH$}{time:>9}   {what}").trim_end());
    }
}

fn style_without_bar() -> ProgressStyle {
    ProgressStyle::with_template("{prefix}{elapsed:>9}   {spinner} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn style_with_bar() -> ProgressStyle {
    ProgressStyle::with_template("{prefix}{elapsed:>9}   {bar:20} {percent:>3} % {msg}, {eta} to go")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn read<T: DeserializeOwned>(output: &Value) -> Option<T> {
    serde_json::from_value(output.clone()).ok()
}

/// What a step has done, in a line.
#[must_use]
pub fn summary(step: &str, output: &Value) -> String {
    let known = match step {
        "open" => read::<OpenOutput>(output).map(|it| match &it.previous {
            Some(previous) => format!("edition {} on {}", it.edition_id, short(previous.as_str())),
            None => format!("edition {}, the product's first", it.edition_id),
        }),
        "resolve_source" => read::<ResolveSourceOutput>(output).map(|it| {
            let names: Vec<_> =
                it.files.iter().map(|file| file.path.rsplit('/').next().unwrap_or(&file.path).to_owned()).collect();
            format!("{}, sha256 {}…", names.join(", "), &it.sha256.as_str()[..8])
        }),
        "build" => read::<BuildOutput>(output).map(|it| {
            format!(
                "{} rows, {} new data {}, {}",
                grouped(it.rows),
                it.new_files,
                if it.new_files == 1 { "file" } else { "files" },
                size(it.new_bytes)
            )
        }),
        "resolve_overlays" => read::<ResolveOverlaysOutput>(output).map(|it| {
            let names: Vec<_> =
                it.overlays.iter().map(|file| format!("{} {}…", file.id, &file.digest.as_str()[..8])).collect();
            names.join(", ")
        }),
        "fold" => read::<FoldStepOutput>(output).map(|it| {
            format!(
                "{} {} changed by {} {}",
                grouped(it.changed),
                if it.changed == 1 { "artefact" } else { "artefacts" },
                grouped(it.applied),
                if it.applied == 1 { "entry" } else { "entries" },
            )
        }),
        "seal" => read::<SealOutput>(output).map(|it| {
            format!(
                "{} files, {} hashed, {} carried, fingerprint {}",
                it.files,
                it.hashed,
                it.carried,
                it.table_fingerprints.join(" ")
            )
        }),
        "check" => read::<CheckOutput>(output).map(|it| format!("{} checks, no finding", it.checks.len())),
        "record" => read::<RecordOutput>(output).map(|it| {
            let mut text = format!("{} in version {}", it.state, it.seq);
            if let Some(superseded) = &it.superseded {
                text.push_str(&format!(", {} superseded", short(superseded.as_str())));
            }
            if it.already {
                text.push_str(", recorded before");
            }
            text
        }),
        "repair_head" | "rebuild_inventory" => recovered(output),
        other => operation::summary(other, output),
    };
    known.unwrap_or_default()
}

/// What a person should know beside the result.
#[must_use]
pub fn findings(step: &str, output: &Value) -> Vec<String> {
    match step {
        "open" => read::<OpenOutput>(output)
            .map(|it| it.repaired.into_iter().map(|r| format!("repair of {}: {}", r.edition_id, r.outcome)).collect()),
        "build" => read::<BuildOutput>(output).map(|it| it.findings),
        "resolve_overlays" => read::<ResolveOverlaysOutput>(output).map(|it| it.findings),
        "fold" => read::<FoldStepOutput>(output).map(|it| {
            let mut told: Vec<String> =
                it.untargeted.iter().map(|entry| format!("{entry} selects nothing in this edition")).collect();
            let rest = it.without_target.saturating_sub(told.len() as u64);
            if rest > 0 {
                told.push(format!("and {} more select nothing", grouped(rest)));
            }
            told
        }),
        _ => None,
    }
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_step_is_told_in_a_line() {
        let edition = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
        assert_eq!(
            summary("open", &json!({"edition_id": edition, "previous": null})),
            format!("edition {edition}, the product's first")
        );
        assert_eq!(
            summary("build", &json!({"rows": 5_475_519, "new_files": 1, "new_bytes": 11_200_000})),
            "5,475,519 rows, 1 new data file, 11.2 MB"
        );
        assert_eq!(
            summary("record", &json!({"seq": 3, "state": "live", "superseded": edition, "already": false})),
            "live in version 3, 01a1…889a45 superseded"
        );
        assert_eq!(summary("another", &json!({})), "");
        let folded = json!({"changed": 1, "artefacts": [], "applied": 1_203, "without_target": 3,
                            "untargeted": ["entries[0] of a", "texts[2] of b"]});
        assert_eq!(summary("fold", &folded), "1 artefact changed by 1,203 entries");
        assert_eq!(
            findings("fold", &folded),
            [
                "entries[0] of a selects nothing in this edition",
                "texts[2] of b selects nothing in this edition",
                "and 1 more select nothing"
            ]
        );
        let overlay = json!({"path": "/in/a.json", "size_bytes": 1, "sha256": "a".repeat(64), "id": "labels",
                             "digest": "b".repeat(64)});
        let resolved = json!({"overlays": [overlay], "findings": ["/in/a.json: x"]});
        assert_eq!(summary("resolve_overlays", &resolved), "labels bbbbbbbb…");
        assert_eq!(findings("resolve_overlays", &resolved), ["/in/a.json: x"]);
    }
}
