//! `jobctl runs import`.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use engine::{ExportError, IfOther, Mutation};
use engine_rules::limits::EXPORT_LIMIT_BYTES;
use serde_json::json;

use super::export_error;
use crate::args::RunsImport;
use crate::cli::reason;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::World;

pub(super) async fn import(world: &World, out: Output, args: RunsImport) -> Result<Exit, Ended> {
    let RunsImport { file, replace, reason } = args;
    let reason = reason::reason(out, Some(reason))?;
    let text = read(&file)?;
    // A file that is refused must not leave a state database behind.
    engine::RunExport::parse(&text).map_err(export_error)?;
    let engine = world.engine().await?;
    let by = Mutation { actor: world.actor.clone(), reason };
    let if_other = if replace { IfOther::Replace } else { IfOther::Refuse };
    let imported = engine.import(&text, &by, if_other).await.map_err(export_error)?;
    let run_id = imported.run_id;
    if imported.changed {
        out.line(format!("run {run_id} is imported; jobctl runs show {run_id} reads it"));
    } else {
        out.line(format!("run {run_id} was imported before, with the same content"));
    }
    let document = json!({ "run_id": run_id.to_string(), "digest": imported.digest, "changed": imported.changed });
    out.document("runs.import", document);
    engine.close().await;
    Ok(Exit::Done)
}

/// The text of a file, which is not read further than an export can be.
fn read(file: &Path) -> Result<String, Ended> {
    let refused = |error: std::io::Error| {
        Ended::usage(format!("{} cannot be read: {error}", file.display()))
            .with_hint("name a file that jobctl runs export wrote and that this user may read")
    };
    let handle = File::open(file).map_err(refused)?;
    let size_bytes = handle.metadata().map_err(refused)?.len();
    let limit = EXPORT_LIMIT_BYTES as u64;
    let mut bytes = Vec::new();
    handle.take(limit + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() > EXPORT_LIMIT_BYTES {
        let what = file.display().to_string();
        let size_bytes = size_bytes.max(limit + 1);
        return Err(export_error(ExportError::TooLarge { what, size_bytes, limit_bytes: EXPORT_LIMIT_BYTES }));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..at];
        let begins = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        export_error(ExportError::Unreadable {
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: at - begins + 1,
            what: "a byte that is not UTF-8".to_owned(),
        })
    })
}
