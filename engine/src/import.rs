//! Runs of other states, kept to be read (DESIGN §2.2, §10: `runs import`). They are documents in a table of their own:
//! whatever takes up, changes, replays or purges runs looks at the table of runs and finds nothing there.

use std::sync::Arc;

use serde_json::json;
use sqlx::{Row as _, SqliteConnection};

use crate::engine::{Inner, Mutation};
use crate::error::{EngineError, storage};
use crate::export::{ExportError, RunExport};
use crate::id::RunId;
use crate::read::{Reader, RunFilter, RunRow, parse_id};

/// What becomes of an import of the same run with other content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfOther {
    /// It stays, and the new one is refused.
    Refuse,
    /// The new one takes its place.
    Replace,
}

/// What an import came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The run.
    pub run_id: RunId,
    /// The digest of its content.
    pub digest: String,
    /// `false` where this content was here already.
    pub changed: bool,
}

/// A run that was imported, as a list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedRow {
    /// The run as it stood when it was exported.
    pub run: RunRow,
    /// When it was imported, in milliseconds since 1970-01-01T00:00:00Z.
    pub at_ms: i64,
    /// By whom.
    pub by: String,
    /// Why.
    pub reason: String,
    /// The digest of its content.
    pub digest: String,
}

/// What stood in the way, as the transaction found it.
enum Found {
    Kept { changed: bool },
    Lives,
    Other { digest: String },
}

pub(crate) async fn import(
    inner: &Inner,
    text: &str,
    by: &Mutation,
    if_other: IfOther,
) -> Result<Imported, ExportError> {
    let export = RunExport::parse(text)?;
    let (run_id, digest, now_ms, by) = (export.run.run_id, export.digest(), inner.clock.now_ms(), by.clone());
    // Texts, numbers and names: it can be written.
    let run: Arc<str> = serde_json::to_string(&export.run).unwrap_or_default().into();
    let details = json!({
        "digest": digest,
        "exported_at_ms": export.exported_at_ms,
        "exported_by": export.exported_by,
        "program_version": export.program_version,
    });
    let (document, details): (Arc<str>, Arc<str>) = (text.into(), details.to_string().into());
    let given = digest.clone();
    let found = inner
        .writer
        .exclusive("keep the imported run", move |connection| {
            let (run, document, details) = (run.clone(), document.clone(), details.clone());
            let (by, digest) = (by.clone(), given.clone());
            Box::pin(async move {
                let id = run_id.to_string();
                match standing(connection, &id).await? {
                    (true, _) => return Ok(Found::Lives),
                    (false, Some(kept)) if kept == digest => return Ok(Found::Kept { changed: false }),
                    (false, Some(kept)) if if_other == IfOther::Refuse => return Ok(Found::Other { digest: kept }),
                    (false, Some(_) | None) => {}
                }
                sqlx::query(
                    "INSERT OR REPLACE INTO imported (run_id, imported_at_ms, imported_by, reason, digest, run, \
                     document) VALUES (?, ?, ?, ?, ?, ?, ?)",
                )
                .bind(&id)
                .bind(now_ms)
                .bind(&by.actor)
                .bind(&by.reason)
                .bind(&digest)
                .bind(&*run)
                .bind(&*document)
                .execute(&mut *connection)
                .await?;
                sqlx::query(
                    "INSERT INTO audit (at_ms, actor, action, run_id, reason, details) \
                     VALUES (?, ?, 'import', ?, ?, ?)",
                )
                .bind(now_ms)
                .bind(&by.actor)
                .bind(&id)
                .bind(&by.reason)
                .bind(&*details)
                .execute(connection)
                .await?;
                Ok(Found::Kept { changed: true })
            })
        })
        .await?;
    match found {
        Found::Kept { changed } => Ok(Imported { run_id, digest, changed }),
        Found::Lives => Err(ExportError::Lives { run: run_id }),
        Found::Other { digest: kept } => Err(ExportError::Differs { run: run_id, kept, given: digest }),
    }
}

/// Whether the run is one of this state, and the digest of what was imported of it.
async fn standing(connection: &mut SqliteConnection, id: &str) -> Result<(bool, Option<String>), sqlx::Error> {
    sqlx::query_as(
        "SELECT EXISTS (SELECT 1 FROM run WHERE run_id = $1), (SELECT digest FROM imported WHERE run_id = $1)",
    )
    .bind(id)
    .fetch_one(connection)
    .await
}

impl Reader {
    /// The imported runs that `filter` lets through, the newest import first.
    ///
    /// # Errors
    /// [`EngineError::Storage`], [`EngineError::Corrupt`].
    pub async fn imported(&self, filter: &RunFilter) -> Result<Vec<ImportedRow>, EngineError> {
        let rows = sqlx::query(
            "SELECT run_id, imported_at_ms, imported_by, reason, digest, run FROM imported ORDER BY imported_no DESC",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(storage("list the imported runs"))?;
        let mut runs = Vec::new();
        for row in &rows {
            let row = imported_row(row)?;
            if runs.len() < filter.limit.map_or(usize::MAX, |limit| limit as usize) && passes(&row.run, filter) {
                runs.push(row);
            }
        }
        Ok(runs)
    }

    /// The ids of all imported runs, the newest import first.
    ///
    /// # Errors
    /// [`EngineError::Storage`], [`EngineError::Corrupt`].
    pub async fn imported_ids(&self) -> Result<Vec<RunId>, EngineError> {
        let ids: Vec<String> = sqlx::query_scalar("SELECT run_id FROM imported ORDER BY imported_no DESC")
            .fetch_all(&self.pool)
            .await
            .map_err(storage("list the imported runs"))?;
        ids.iter().map(|id| parse_id(id)).collect()
    }

    /// An imported run, whole.
    ///
    /// # Errors
    /// [`EngineError::UnknownRun`], [`EngineError::Storage`]; [`ExportError`] when the document no longer reads.
    pub async fn imported_run(&self, run_id: RunId) -> Result<(ImportedRow, RunExport), ExportError> {
        let row = sqlx::query("SELECT * FROM imported WHERE run_id = ?")
            .bind(run_id.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(storage("read the imported run"))?
            .ok_or_else(|| EngineError::UnknownRun { run: run_id.to_string() })?;
        let document: String = row.try_get("document").map_err(storage("read the imported run"))?;
        Ok((imported_row(&row)?, RunExport::parse(&document)?))
    }
}

fn imported_row(row: &sqlx::sqlite::SqliteRow) -> Result<ImportedRow, EngineError> {
    let read = || -> Result<_, sqlx::Error> {
        let text = |column: &str| row.try_get::<String, _>(column);
        Ok((text("run_id")?, text("run")?, row.try_get("imported_at_ms")?, text("imported_by")?, text("reason")?))
    };
    let (id, run, at_ms, by, reason) = read().map_err(storage("read an imported run"))?;
    let run = serde_json::from_str(&run).map_err(|_| EngineError::Corrupt {
        subject: format!("the imported run {id}"),
        found: run.clone(),
        expected: "a run as JSON",
    })?;
    let digest = row.try_get("digest").map_err(storage("read an imported run"))?;
    Ok(ImportedRow { run, at_ms, by, reason, digest })
}

fn passes(run: &RunRow, filter: &RunFilter) -> bool {
    (filter.states.is_empty() || filter.states.contains(&run.state))
        && filter.workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
        && filter.labels.iter().all(|(name, value)| run.labels.get(name) == Some(value))
        && filter.since_at_ms.is_none_or(|since_ms| run.created_at_ms >= since_ms)
}
