//! The lake as a sealed edition has it (*edition* §1, §7): no rows in the catalog, no delete file, one snapshot,
//! nothing to clean up, and a data path that moves with the edition.
//!
//! DuckLake's own maintenance must never run here: it deletes files of `data/` that earlier editions list. What is
//! checkpointed is the catalog's database, not the lake.

use catalog_rules::manifest::DATA_PATH;
use engine_rules::crash;

use super::error::EditionError;
use super::lake::{self, CATALOG};
use super::layout::EditionFolder;
use crate::duck::{Access, LAKE, Session};

/// Settles the lake of `folder` and closes it. With `merge`, each table ends in one file, or one for each partition.
/// Safe to repeat, also after a kill half way: what was committed is taken in and the rest is done.
///
/// # Errors
/// [`EditionError::Unsettled`] when DuckLake left delete files or inlined rows; else what DuckDB said.
pub fn settle(session: &Session, folder: &EditionFolder, merge: bool) -> Result<(), EditionError> {
    session.attach_lake(&folder.lake(), folder.data(), Access::Write)?;
    session.run("flush rows of the catalog", &format!("CALL ducklake_flush_inlined_data('{LAKE}')"))?;
    // The default threshold keeps small deletions, which is what a daily delta is (catalog §4.5).
    session.run(
        "rewrite files with deletions",
        &format!("CALL ducklake_rewrite_data_files('{LAKE}', delete_threshold => 0)"),
    )?;
    if merge {
        session.run("merge data files", &format!("CALL ducklake_merge_adjacent_files('{LAKE}')"))?;
    }
    expire(session)?;
    session.run(
        "settle the lake's catalog",
        &format!(
            "DELETE FROM {CATALOG}.ducklake_files_scheduled_for_deletion;
             UPDATE {CATALOG}.ducklake_metadata SET value = '{DATA_PATH}' WHERE key = 'data_path'"
        ),
    )?;
    // All of this is in the write-ahead log now, and only there.
    crash::point("edition.seal.lake_in_log");
    session.run("checkpoint the lake's catalog", &format!("CHECKPOINT {CATALOG}"))?;
    let deletions = lake::referenced_files(session)?.iter().filter(|file| file.deletes).count();
    session.detach(LAKE)?;
    let inlined = lake::inlined_rows(session, &folder.lake())?;
    for (count, what) in [(deletions as u64, "delete files"), (inlined, "rows in the catalog")] {
        if count > 0 {
            return Err(EditionError::Unsettled { path: folder.lake(), found: format!("{count} {what}") });
        }
    }
    Ok(())
}

/// Expires every snapshot but the current one (D34): their files are then listed by the manifests that list them, and
/// by no later one.
fn expire(session: &Session) -> Result<(), EditionError> {
    let sql = format!(
        "SELECT snapshot_id FROM {CATALOG}.ducklake_snapshot
         WHERE snapshot_id < (SELECT max(snapshot_id) FROM {CATALOG}.ducklake_snapshot) ORDER BY 1"
    );
    let old: Vec<i64> = session.rows("list the snapshots", &sql, [], |row| row.get(0))?;
    if !old.is_empty() {
        let list: Vec<String> = old.iter().map(ToString::to_string).collect();
        let sql = format!("CALL ducklake_expire_snapshots('{LAKE}', versions => [{}])", list.join(", "));
        session.run("expire old snapshots", &sql)?;
    }
    Ok(())
}
