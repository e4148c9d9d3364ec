//! `jobctl run fold`: starts the run and stays with it.

use catalog_rules::ids::ProductId;
use engine::Start;
use engine_rules::failure::ActivityError as _;

use super::cancelled::take_back_all;
use super::detach;
use super::publish::{busy, stay};
use super::reason::reason;
use crate::args::Fold;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::start::{Origin, fold_run};
use crate::wire::{World, engine_error};

/// Folds overlays into the product's live edition and stays with the run.
///
/// # Errors
/// Usage, a key held by another run, or what the engine fails with. A run that failed is told and gives its exit code.
pub async fn fold(world: &World, out: Output, args: Fold) -> Result<Exit, Ended> {
    let folder =
        std::env::current_dir().map_err(|error| Ended::usage(format!("the working folder cannot be told: {error}")))?;
    let args = Fold { reason: Some(reason(out, args.reason)?), ..args };
    let origin = Origin {
        sources: &world.config.sources,
        zone: &world.config.time_zone,
        folder: &folder,
        actor: world.actor.clone(),
        reason: "jobctl run fold".to_owned(),
    };
    let run = fold_run(&args, &origin)?;
    let product_id: ProductId = args.product.parse()?;
    let title = format!("fold {product_id}");
    activities::inventory::open_catalog(world.store.as_ref()).map_err(|error| Ended::from(error.to_failure()))?;
    let engine = world.engine().await?;
    take_back_all(world, &engine.reader(), &product_id).await?;
    if args.detach {
        return match detach::enqueue(&engine, run).await? {
            Ok(run_id) => Ok(detach::tell(out, "run.fold", &title, run_id)),
            Err(holder) => Err(busy(&engine, &product_id, holder).await?),
        };
    }
    let run_id = match engine.start(run).await.map_err(|error| engine_error(&error))? {
        Start::Started(started) => started.run_id,
        Start::Busy { holder } => return Err(busy(&engine, &product_id, holder).await?),
    };
    let ended = stay(world, &engine, out, run_id, &title).await?;
    out.document("run.fold", ended.document(&[]));
    Ok(ended.exit)
}
