//! `jobctl runs export`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use super::{export_error, named};
use crate::exit::{Ended, Exit};
use crate::output::{Output, size};
use crate::wire::World;

pub(super) async fn export(world: &World, out: Output, run: &str, file: Option<&Path>) -> Result<Exit, Ended> {
    let (reader, run_id) = named(world, run).await?;
    let export = reader.export(run_id, &world.actor).await.map_err(export_error)?;
    let text = export.to_text();
    let Some(file) = file else {
        // The document itself is what was asked for, as text and as JSON.
        out.raw(text.trim_end());
        return Ok(Exit::Done);
    };
    write(file, &text)?;
    out.line(format!("run {run_id} is in {}, {}", file.display(), size(text.len() as u64)));
    let document = json!({
        "run_id": run_id.to_string(),
        "file": file.display().to_string(),
        "size_bytes": text.len(),
        "digest": export.digest(),
    });
    out.document("runs.export.file", document);
    Ok(Exit::Done)
}

/// Writes a file that is not there yet, whole or not at all.
fn write(file: &Path, text: &str) -> Result<(), Ended> {
    let refused = |error: std::io::Error| {
        Ended::usage(format!("{} cannot be written: {error}", file.display()))
            .with_hint("name a file that is not there yet, in a folder that this user may write to")
    };
    let mut handle = OpenOptions::new().create_new(true).write(true).open(file).map_err(refused)?;
    let written = handle.write_all(text.as_bytes()).and_then(|()| handle.sync_all());
    written.map_err(|error| {
        // Half a file would be taken for a damaged one.
        let _ = std::fs::remove_file(file);
        refused(error)
    })
}
