//! Turn old superseded and withdrawn editions into tombstones (*catalog* §6.4 retention, D30).

use std::collections::BTreeMap;

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{
    CommitInput, CommitOutput, FindRetirableInput, FindRetirableOutput, Intent, Warning,
};
use catalog_rules::contracts::operations::{OperationOutput, RetireInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "retire";
/// Its definition version.
pub const VERSION: u32 = 1;

const FIND_RETIRABLE: StepDef<FindRetirableInput, FindRetirableOutput> =
    StepDef::new("find_retirable", contract::FIND_RETIRABLE, RetryPolicy::LOCAL);
const RETIRE: StepDef<CommitInput, CommitOutput> = StepDef::new("retire", contract::COMMIT, RetryPolicy::LOCAL);

/// Retires the editions that are named; or, where none is, those that are old enough, which the first step records. All of
/// them, in one version, or none.
///
/// # Errors
/// The failure of the step that failed for good: an edition that is live or waits, that is cited, or inside its window.
pub async fn retire<C: Context>(ctx: &mut C, input: RetireInput) -> Result<OperationOutput, Interrupt> {
    let RetireInput { products, editions, before_window, cause } = input;
    let (editions, left) = match products.first() {
        Some(product) if !editions.is_empty() => (BTreeMap::from([(product.clone(), editions)]), 0),
        Some(_) | None => {
            let found = ctx.step(&FIND_RETIRABLE, &FindRetirableInput { products }).await?;
            (found.editions, found.left)
        }
    };
    let intent = Intent::Retire { editions, before_window };
    let mut output: OperationOutput = ctx.step(&RETIRE, &CommitInput { intent, cause }).await?.into();
    if left > 0 {
        output.warnings.push(Warning {
            code: "retire.more".to_owned(),
            message: format!("{left} more editions are old enough than one run retires"),
            fix: "retire again: jobctl run retire".to_owned(),
        });
    }
    Ok(output)
}

#[cfg(test)]
mod tests;
