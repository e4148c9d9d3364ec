//! The one place that makes a run out of the words of `jobctl run …`: for a person who waits for it, and for a schedule.

mod fold;
mod operations;

use std::collections::BTreeMap;
use std::path::Path;

use catalog_rules::contracts::publish::{Cause, PublishInput, SourceInput};
use catalog_rules::ids::ProductId;
use catalog_rules::instant::Instant;
use catalog_rules::inventory::Lifecycle;
use engine::{KeyPolicy, StartRun};
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::args::{Publish, Run};
use crate::cli::when;
use crate::exit::Ended;

pub use fold::fold_run;
pub use operations::{Asked, asked, command, how, how_mut, needs_reason, operation_run};

/// Who asks for a run, and from where.
pub struct Origin<'a> {
    /// The configured sources.
    pub sources: &'a BTreeMap<ProductId, SourceInput>,
    /// The time zone of local times.
    pub zone: &'a TimeZone,
    /// What relative paths are relative to.
    pub folder: &'a Path,
    /// Who starts it.
    pub actor: String,
    /// Why, where the words give no reason.
    pub reason: String,
}

/// The concurrency key of a product's publishes.
pub fn publish_key(product_id: &ProductId) -> String {
    format!("publish:{product_id}")
}

/// The run that these words ask for.
///
/// # Errors
/// Usage: a product or source that cannot be meant.
pub fn start_run(run: &Run, origin: &Origin<'_>) -> Result<StartRun, Ended> {
    match run {
        Run::Publish(args) => {
            let start = publish_run(args, &publish_input(args, origin)?, origin)?;
            // Who waits in person looks again and again; what runs by itself stands in line.
            let key_policy = if args.wait { KeyPolicy::Queue } else { start.key_policy };
            Ok(StartRun { key_policy, ..start })
        }
        Run::Fold(args) => fold_run(args, origin),
        operation => operation_run(operation, origin),
    }
}

/// What a publish works on.
///
/// # Errors
/// Usage: a product or source that cannot be meant.
pub fn publish_input(args: &Publish, origin: &Origin<'_>) -> Result<PublishInput, Ended> {
    let product_id: ProductId = args.product.parse()?;
    Ok(PublishInput {
        source: source(&product_id, args, origin)?,
        cause: Cause {
            actor: origin.actor.clone(),
            reason: args.reason.clone().unwrap_or_else(|| origin.reason.clone()),
        },
        lifecycle: args.is_final.then_some(Lifecycle::Final),
        release_at: args.release_at.as_ref().map(|text| release_at(text, origin)).transpose()?,
        product_id,
    })
}

/// The run of a publish, which does not start while another of the product is live.
///
/// # Errors
/// When the input cannot be written as JSON.
pub fn publish_run(args: &Publish, input: &PublishInput, origin: &Origin<'_>) -> Result<StartRun, Ended> {
    let run = StartRun {
        reason: args.reason.clone(),
        ..StartRun::new(workflows::publish::NAME, to_value(input)?, origin.actor.clone())
    };
    Ok(run.key(publish_key(&input.product_id), KeyPolicy::Forbid).label("product", input.product_id.as_str()))
}

/// The instant of a release that a person wrote.
fn release_at(text: &str, origin: &Origin<'_>) -> Result<Instant, Ended> {
    let at = when::release("--release-at", text, origin.zone, None)?;
    Ok(Instant::from_ms(at.as_millisecond()))
}

fn source(product_id: &ProductId, args: &Publish, origin: &Origin<'_>) -> Result<SourceInput, Ended> {
    if args.source.is_empty() {
        return origin.sources.get(product_id).cloned().ok_or_else(|| {
            Ended::usage(format!(
                "product {product_id} has no source: give --source PATH, or [sources.{product_id}] in jobctl.toml"
            ))
        });
    }
    codr(&args.source, &args.metadata, origin.folder)
}

/// A full table as a person names it: its files, at most one a language, and its metadata. Relative paths are relative to
/// `folder`.
///
/// # Errors
/// Too many files, or a path that no run can record.
pub fn codr<P: AsRef<Path>>(files: &[P], metadata: &[P], folder: &Path) -> Result<SourceInput, Ended> {
    if files.len() > 2 {
        return Err(Ended::usage(format!(
            "--source was given {} times; expected once, or twice of which one is French",
            files.len()
        ))
        .with_hint("give one --source per language"));
    }
    let absolute = |path: &P| absolute(path.as_ref(), folder);
    Ok(SourceInput::Codr {
        files: files.iter().map(absolute).collect::<Result<_, _>>()?,
        metadata: metadata.iter().map(absolute).collect::<Result<_, _>>()?,
    })
}

/// A path as a run records it.
fn absolute(path: &Path, folder: &Path) -> Result<String, Ended> {
    let path =
        std::path::absolute(folder.join(path)).map_err(|error| Ended::usage(format!("{}: {error}", path.display())))?;
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Ended::usage(format!(
            "the path {} is not UTF-8, and a run can record only text; expected a path in UTF-8",
            path.display()
        ))
        .with_hint("rename the file, or give a symbolic link to it")
    })
}

/// `value` as a run's input.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn to_value<T: serde::Serialize>(value: &T) -> Result<Value, Ended> {
    serde_json::to_value(value).map_err(|error| Ended::usage(format!("the input cannot be recorded: {error}")))
}
