//! The run of `jobctl run fold`.

use catalog_rules::contracts::fold::FoldInput;
use catalog_rules::contracts::publish::Cause;
use catalog_rules::ids::ProductId;
use engine::{KeyPolicy, StartRun};

use super::{Origin, absolute, publish_key, release_at, to_value};
use crate::args::Fold;
use crate::exit::Ended;

/// The run of a fold. It has the key of the product's publishes, so that the two never meet.
///
/// # Errors
/// Usage: a product or overlay that cannot be meant.
pub fn fold_run(args: &Fold, origin: &Origin<'_>) -> Result<StartRun, Ended> {
    let product_id: ProductId = args.product.parse()?;
    let overlays = args.overlays.iter().map(|path| absolute(path, origin.folder)).collect::<Result<_, _>>()?;
    let input = FoldInput {
        product_id: product_id.clone(),
        overlays,
        audience: args.audience.clone(),
        cause: Cause {
            actor: origin.actor.clone(),
            reason: args.reason.clone().unwrap_or_else(|| origin.reason.clone()),
        },
        release_at: args.release_at.as_ref().map(|text| release_at(text, origin)).transpose()?,
    };
    let run = StartRun {
        reason: args.reason.clone(),
        ..StartRun::new(workflows::fold::NAME, to_value(&input)?, origin.actor.clone())
    };
    Ok(run.key(publish_key(&product_id), KeyPolicy::Forbid).label("product", product_id.as_str()))
}
