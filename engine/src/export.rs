//! A run as one document, to be read elsewhere (DESIGN §2.2, §10: `runs export`).

use std::collections::BTreeMap;

use engine_rules::digest::{canonical_json, digest_text, input_digest};
use engine_rules::failure::{ActivityError, Disposition};
use engine_rules::limits::EXPORT_LIMIT_BYTES;
use engine_rules::state::RunState;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{Row as _, SqliteConnection};

use crate::error::{EngineError, storage};
use crate::id::RunId;
use crate::read::{AuditRow, Reader, RunRow, StepRow, parse_id};

/// What names the document.
const SCHEMA: &str = "jobctl.runs.export/1";

/// Counted up when an older program could no longer read what a newer one writes.
const FORMAT_VERSION: u32 = 1;

/// The parts that have a digest each, so that a damaged file says where.
const PARTS: [&str; 5] = ["run", "steps", "audit", "signals", "children"];

/// A run with all that is known of it, as it stood at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunExport {
    /// `jobctl.runs.export/1`.
    pub schema: String,
    /// 1.
    pub format_version: u32,
    /// When it was exported, in milliseconds since 1970-01-01T00:00:00Z.
    pub exported_at_ms: i64,
    /// By whom.
    pub exported_by: String,
    /// By which version of the program.
    pub program_version: String,
    /// The SHA-256 of each part's canonical JSON.
    pub digests: BTreeMap<String, String>,
    /// The run.
    pub run: RunRow,
    /// Its steps with their attempts.
    pub steps: Vec<StepRow>,
    /// What persons did to it.
    pub audit: Vec<AuditRow>,
    /// What was sent to it.
    pub signals: Vec<ExportedSignal>,
    /// The runs that belong to it; each can be exported itself.
    pub children: Vec<ExportedChild>,
}

/// A signal that was sent to the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedSignal {
    /// Its name.
    pub name: String,
    /// What it carries.
    pub payload: Value,
    /// Who sent it.
    pub actor: String,
    /// When.
    pub sent_at_ms: i64,
    /// The place of the step that took it.
    pub taken_by: Option<String>,
    /// When.
    pub taken_at_ms: Option<i64>,
}

/// A run that belongs to the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedChild {
    /// Its id.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow: String,
    /// How it stood.
    pub state: RunState,
    /// The place of the step that started it.
    pub position: Option<String>,
}

/// Why a run could not be exported, or what was exported not imported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It is larger than an export may be.
    #[error("{what} has {size_bytes} bytes; an export has at most {limit_bytes}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its size; of a run, that of what the journal holds of it.
        size_bytes: u64,
        /// The limit.
        limit_bytes: usize,
    },
    /// The text is not JSON, or not JSON of the shape that it says it has.
    #[error("at line {line}, column {column}, the file is not the export of a run: {what}")]
    Unreadable {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the parser found and expected.
        what: String,
    },
    /// It is the document of something else.
    #[error("the file's schema is {found}; expected \"{SCHEMA}\"")]
    Foreign {
        /// What stands there.
        found: String,
    },
    /// A newer program wrote it.
    #[error("the file's format_version is {found}; this program reads {FORMAT_VERSION}")]
    Version {
        /// What stands there.
        found: String,
    },
    /// Its content is not what was exported.
    #[error("{place} is not what was exported: its digest is {found}, and {recorded} is recorded")]
    Damaged {
        /// Which part of the file, and of it the step where that can be told.
        place: String,
        /// The digest of what is there.
        found: String,
        /// The digest that the file holds.
        recorded: String,
    },
    /// The run is one of this state.
    #[error("run {run} is in this state itself")]
    Lives {
        /// The run.
        run: RunId,
    },
    /// The run was imported before, with other content.
    #[error("run {run} was imported before with other content: its digest is {kept}, and that of the file {given}")]
    Differs {
        /// The run.
        run: RunId,
        /// The digest of what was imported.
        kept: String,
        /// The digest of what is to be imported.
        given: String,
    },
    /// The engine could not do it.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl ActivityError for ExportError {
    fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "engine.export_too_large",
            Self::Unreadable { .. } => "engine.import_unreadable",
            Self::Foreign { .. } => "engine.import_foreign",
            Self::Version { .. } => "engine.import_version",
            Self::Damaged { .. } => "engine.import_damaged",
            Self::Lives { .. } => "engine.import_lives",
            Self::Differs { .. } => "engine.import_differs",
            Self::Engine(error) => error.code(),
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::TooLarge { .. }
            | Self::Unreadable { .. }
            | Self::Foreign { .. }
            | Self::Version { .. }
            | Self::Damaged { .. }
            | Self::Lives { .. }
            | Self::Differs { .. } => Disposition::Terminal,
            Self::Engine(error) => error.disposition(),
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::TooLarge { .. } => "copy the state directory while nothing runs, and read the run there with --state",
            Self::Unreadable { .. } | Self::Foreign { .. } => "name a file that jobctl runs export wrote",
            Self::Version { .. } => "use the version of jobctl that wrote it, or a newer one",
            Self::Damaged { .. } => {
                "export the run again and copy the file whole: jobctl runs export RUN --output FILE"
            }
            Self::Lives { .. } => "jobctl runs show RUN reads it where it is",
            Self::Differs { .. } => {
                "keep what is here, or put the file in its place: jobctl runs import FILE --replace --reason …"
            }
            Self::Engine(error) => return error.hint(),
        };
        Some(hint.to_owned())
    }
}

impl RunExport {
    /// The document as a file holds it; ends with a line's end.
    #[must_use]
    pub fn to_text(&self) -> String {
        // Texts, numbers and names: it can be written.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The digest of the content, whoever exported it and when.
    #[must_use]
    pub fn digest(&self) -> String {
        let digests = self.digests.iter().map(|(part, digest)| (part.clone(), Value::from(digest.as_str())));
        digest_text(&canonical_json(&Value::Object(digests.collect())))
    }

    /// The export that `text` holds, checked: it is one, of a version that this program reads, and as it was written.
    ///
    /// # Errors
    /// [`ExportError`], but for those of the state.
    pub fn parse(text: &str) -> Result<Self, ExportError> {
        check_size("the file", text.len() as u64)?;
        let unreadable = |error: serde_json::Error| ExportError::Unreadable {
            line: error.line(),
            column: error.column(),
            what: engine_rules::limits::cut(error.to_string(), 400),
        };
        let value: Value = serde_json::from_str(text).map_err(unreadable)?;
        let stands = |name: &str| value.get(name).map_or("absent".to_owned(), short);
        if value.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
            return Err(ExportError::Foreign { found: stands("schema") });
        }
        if value.get("format_version").and_then(Value::as_u64) != Some(u64::from(FORMAT_VERSION)) {
            return Err(ExportError::Version { found: stands("format_version") });
        }
        let export: Self = serde_json::from_str(text).map_err(unreadable)?;
        for part in PARTS {
            let found = value.get(part).map(input_digest).unwrap_or_default();
            let recorded = export.digests.get(part).cloned().unwrap_or_else(|| "none".to_owned());
            if found != recorded {
                return Err(ExportError::Damaged { place: export.damaged_place(part), found, recorded });
            }
        }
        Ok(export)
    }

    /// Which step is damaged, where its input's own digest tells.
    fn damaged_place(&self, part: &str) -> String {
        let step = self.steps.iter().filter(|_| part == "steps").find(|step| {
            step.kind == "activity" && step.input.as_ref().is_some_and(|input| input_digest(input) != step.input_digest)
        });
        match step {
            Some(step) => format!("the part {part:?}, in the input of step {} at {},", step.label, step.position),
            None => format!("the part {part:?}"),
        }
    }
}

/// A value as a message shows it.
fn short(value: &Value) -> String {
    engine_rules::limits::cut(value.to_string(), 100)
}

fn check_size(what: &str, size_bytes: u64) -> Result<(), ExportError> {
    if size_bytes <= EXPORT_LIMIT_BYTES as u64 {
        return Ok(());
    }
    Err(ExportError::TooLarge { what: what.to_owned(), size_bytes, limit_bytes: EXPORT_LIMIT_BYTES })
}

/// How many bytes the journal holds of a run.
const SIZE: &str = "SELECT ifnull(octet_length(r.input), 0) + ifnull(octet_length(r.output), 0) \
     + ifnull((SELECT sum(ifnull(octet_length(s.input), 0) + ifnull(octet_length(s.output), 0) \
         + ifnull(octet_length(s.failure), 0)) FROM step s WHERE s.run_no = r.run_no), 0) \
     + ifnull((SELECT sum(octet_length(a.failure)) FROM attempt a WHERE a.run_no = r.run_no), 0) \
     + ifnull((SELECT sum(octet_length(g.payload)) FROM signal g WHERE g.run_no = r.run_no), 0) \
     FROM run r WHERE r.run_id = ?";

impl Reader {
    /// The run as one document, as it stood at one moment.
    ///
    /// # Errors
    /// [`EngineError::UnknownRun`]; [`ExportError::TooLarge`] for more than
    /// [`EXPORT_LIMIT_BYTES`](engine_rules::limits::EXPORT_LIMIT_BYTES), which no import would take.
    pub async fn export(&self, run_id: RunId, by: &str) -> Result<RunExport, ExportError> {
        let mut snapshot = self.pool.begin().await.map_err(storage("read the run"))?;
        let size: Option<i64> = sqlx::query_scalar(SIZE)
            .bind(run_id.to_string())
            .fetch_optional(&mut *snapshot)
            .await
            .map_err(storage("read the run's size"))?;
        // What is too large must not be read.
        check_size(&format!("run {run_id}"), size.unwrap_or(0).unsigned_abs())?;
        let mut detail = self.detail(&mut snapshot, run_id).await?;
        if let Some(owner) = detail.run.owner.as_mut().filter(|_| detail.run.state.is_terminal()) {
            // Whether the process is still there says nothing of a run that ended, and must not make exports differ.
            owner.alive = false;
        }
        let mut export = RunExport {
            schema: SCHEMA.to_owned(),
            format_version: FORMAT_VERSION,
            exported_at_ms: self.clock.now_ms(),
            exported_by: by.to_owned(),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            digests: BTreeMap::new(),
            signals: signals(&mut snapshot, run_id).await?,
            children: children(&mut snapshot, run_id).await?,
            run: detail.run,
            steps: detail.steps,
            audit: detail.audit,
        };
        let value = serde_json::to_value(&export).unwrap_or_default();
        export.digests =
            PARTS.into_iter().filter_map(|part| Some((part.to_owned(), input_digest(value.get(part)?)))).collect();
        check_size(&format!("the export of run {run_id}"), export.to_text().len() as u64)?;
        Ok(export)
    }
}

async fn signals(snapshot: &mut SqliteConnection, run_id: RunId) -> Result<Vec<ExportedSignal>, EngineError> {
    let rows = sqlx::query(
        "SELECT name, payload, actor, sent_at_ms, taken_by, taken_at_ms FROM signal \
         WHERE run_no = (SELECT run_no FROM run WHERE run_id = ?) ORDER BY signal_no",
    )
    .bind(run_id.to_string())
    .fetch_all(snapshot)
    .await
    .map_err(storage("read the run's signals"))?;
    rows.iter()
        .map(|row| {
            let payload: String = row.try_get("payload").map_err(storage("read the run's signals"))?;
            let payload = serde_json::from_str(&payload).map_err(|_| EngineError::Corrupt {
                subject: format!("a signal of run {run_id}"),
                found: payload.clone(),
                expected: "JSON",
            })?;
            let read = || -> Result<ExportedSignal, sqlx::Error> {
                Ok(ExportedSignal {
                    name: row.try_get("name")?,
                    payload,
                    actor: row.try_get("actor")?,
                    sent_at_ms: row.try_get("sent_at_ms")?,
                    taken_by: row.try_get("taken_by")?,
                    taken_at_ms: row.try_get("taken_at_ms")?,
                })
            };
            read().map_err(storage("read the run's signals"))
        })
        .collect()
}

async fn children(snapshot: &mut SqliteConnection, run_id: RunId) -> Result<Vec<ExportedChild>, EngineError> {
    let rows: Vec<(String, String, String, Option<String>)> = sqlx::query_as(
        "SELECT run_id, workflow, state, parent_position FROM run WHERE parent_run_id = ? ORDER BY run_no",
    )
    .bind(run_id.to_string())
    .fetch_all(snapshot)
    .await
    .map_err(storage("read the run's children"))?;
    rows.into_iter()
        .map(|(id, workflow, state, position)| {
            let state = RunState::from_name(&state).ok_or_else(|| EngineError::Corrupt {
                subject: format!("run {id}"),
                found: state.clone(),
                expected: "a state of a run",
            })?;
            Ok(ExportedChild { run_id: parse_id(&id)?, workflow, state, position })
        })
        .collect()
}
