//! What the words of an operation on the Inventory ask for, and the run of it.

use std::collections::BTreeSet;
use std::path::Path;

use catalog_rules::contracts::operations::{
    CorrectInput, DescribeInput, DescriptionChange, EmbargoInput, OperationOutput, ReinstateInput, ReleaseInput,
    RescheduleInput, RetireInput, RollbackInput, SetLifecycleInput, SupersedeInput, SupersedeSchemaInput,
    WithdrawInput,
};
use catalog_rules::contracts::publish::Cause;
use catalog_rules::ids::{BadId, ProductId};
use catalog_rules::inventory::{Lifecycle, SchemaVersion, Seq};
use engine::{KeyPolicy, StartRun};
use engine_rules::context::{Context, Interrupt};
use engine_rules::limits::PAYLOAD_LIMIT_BYTES;
use serde_json::{Map, Value};

use super::{Origin, release_at, to_value};
use crate::args::{How, LifecycleName, OnOff, Run};
use crate::exit::Ended;

/// The concurrency key of releases: one at a time in a catalog (DESIGN §2.2).
const RELEASE_KEY: &str = "release";
/// The concurrency key of what takes live editions back, of one product or of several. Two of these at once would each
/// settle on what is live; that a later one goes no step further than anybody asked for, `if_live` sees to. A publish has another key: a rollback in the middle of it
/// is settled by the catalog's rules.
const TAKE_BACK_KEY: &str = "take-back";

/// An operation that is asked for.
#[derive(Debug)]
pub enum Asked {
    Release(ReleaseInput),
    Rollback(RollbackInput),
    Withdraw(WithdrawInput),
    Supersede(SupersedeInput),
    Reinstate(ReinstateInput),
    Retire(RetireInput),
    Reschedule(RescheduleInput),
    SupersedeSchema(SupersedeSchemaInput),
    SetLifecycle(SetLifecycleInput),
    Embargo(EmbargoInput),
    Describe(DescribeInput),
    Correct(CorrectInput),
}

/// How the operation is carried out; `None` for a publish, a fold and a recovery.
pub fn how(run: &Run) -> Option<&How> {
    match run {
        Run::Publish(_) | Run::Fold(_) | Run::Recovery(_) => None,
        Run::Release(args) => Some(&args.how),
        Run::Rollback(args) => Some(&args.how),
        Run::Withdraw(args) => Some(&args.how),
        Run::Supersede(args) => Some(&args.how),
        Run::Reinstate(args) => Some(&args.how),
        Run::Retire(args) => Some(&args.how),
        Run::Reschedule(args) => Some(&args.how),
        Run::SupersedeSchema(args) => Some(&args.how),
        Run::SetLifecycle(args) => Some(&args.how),
        Run::Embargo(args) => Some(&args.how),
        Run::Describe(args) => Some(&args.how),
        Run::Correct(args) => Some(&args.how),
    }
}

/// The same, to be changed.
pub fn how_mut(run: &mut Run) -> Option<&mut How> {
    match run {
        Run::Publish(_) | Run::Fold(_) | Run::Recovery(_) => None,
        Run::Release(args) => Some(&mut args.how),
        Run::Rollback(args) => Some(&mut args.how),
        Run::Withdraw(args) => Some(&mut args.how),
        Run::Supersede(args) => Some(&mut args.how),
        Run::Reinstate(args) => Some(&mut args.how),
        Run::Retire(args) => Some(&mut args.how),
        Run::Reschedule(args) => Some(&mut args.how),
        Run::SupersedeSchema(args) => Some(&mut args.how),
        Run::SetLifecycle(args) => Some(&mut args.how),
        Run::Embargo(args) => Some(&mut args.how),
        Run::Describe(args) => Some(&mut args.how),
        Run::Correct(args) => Some(&mut args.how),
    }
}

/// The operation's name, which is its command's and its workflow's; `None` for what is no operation on the Inventory.
pub fn command(run: &Run) -> Option<&'static str> {
    match run {
        Run::Publish(_) | Run::Fold(_) | Run::Recovery(_) => None,
        Run::Release(_) => Some(workflows::release::NAME),
        Run::Rollback(_) => Some(workflows::rollback::NAME),
        Run::Withdraw(_) => Some(workflows::withdraw::NAME),
        Run::Supersede(_) => Some(workflows::supersede::NAME),
        Run::Reinstate(_) => Some(workflows::reinstate::NAME),
        Run::Retire(_) => Some(workflows::retire::NAME),
        Run::Reschedule(_) => Some(workflows::reschedule::NAME),
        Run::SupersedeSchema(_) => Some(workflows::supersede_schema::NAME),
        Run::SetLifecycle(_) => Some(workflows::set_lifecycle::NAME),
        Run::Embargo(_) => Some(workflows::embargo::NAME),
        Run::Describe(_) => Some(workflows::describe::NAME),
        Run::Correct(_) => Some(workflows::correct::NAME),
    }
}

/// Whether a person must say why: the operation takes something back, or waives a rule.
pub fn needs_reason(run: &Run) -> bool {
    match run {
        Run::Rollback(_) | Run::Withdraw(_) | Run::Correct(_) | Run::Recovery(_) => true,
        Run::Retire(args) => args.before_window,
        Run::Publish(_)
        | Run::Fold(_)
        | Run::Release(_)
        | Run::Supersede(_)
        | Run::Reinstate(_)
        | Run::Reschedule(_)
        | Run::SupersedeSchema(_)
        | Run::SetLifecycle(_)
        | Run::Embargo(_)
        | Run::Describe(_) => false,
    }
}

/// What the words ask for; `None` for a publish, a fold and a recovery.
///
/// # Errors
/// Usage: an id, a time or a file that cannot be meant.
pub fn asked(run: &Run, origin: &Origin<'_>) -> Result<Option<Asked>, Ended> {
    let given = how(run).and_then(|how| how.reason.clone());
    let cause = Cause { actor: origin.actor.clone(), reason: given.unwrap_or_else(|| origin.reason.clone()) };
    Ok(Some(match run {
        Run::Publish(_) | Run::Fold(_) | Run::Recovery(_) => return Ok(None),
        Run::Release(args) => {
            one_product(&args.product, &args.edition)?;
            Asked::Release(ReleaseInput { products: ids(&args.product)?, editions: ids(&args.edition)?, cause })
        }
        Run::Rollback(args) => Asked::Rollback(RollbackInput {
            products: ids(&args.product)?,
            to: ids(&args.to)?,
            if_live: ids(&args.if_live)?,
            cause,
        }),
        Run::Withdraw(args) => Asked::Withdraw(WithdrawInput {
            product_id: args.product.parse()?,
            edition_id: args.what.edition.as_deref().map(str::parse).transpose()?,
            if_live: ids(&args.if_live)?,
            cause,
        }),
        Run::Supersede(args) => Asked::Supersede(SupersedeInput {
            product_id: args.product.parse()?,
            edition_id: args.edition.parse()?,
            by: args.by.parse()?,
            cause,
        }),
        Run::Reinstate(args) => Asked::Reinstate(ReinstateInput {
            product_id: args.product.parse()?,
            edition_id: args.edition.parse()?,
            cause,
        }),
        Run::Retire(args) => {
            one_product(&args.product, &args.edition)?;
            Asked::Retire(RetireInput {
                products: ids(&args.product)?,
                editions: ids(&args.edition)?,
                before_window: args.before_window,
                cause,
            })
        }
        Run::Reschedule(args) => Asked::Reschedule(RescheduleInput {
            product_id: args.product.parse()?,
            edition_id: args.edition.parse()?,
            release_at: args.when.release_at.as_deref().map(|text| release_at(text, origin)).transpose()?,
            cause,
        }),
        Run::SupersedeSchema(args) => Asked::SupersedeSchema(SupersedeSchemaInput {
            schema_version: SchemaVersion::new(args.schema.clone()),
            products: some(ids(&args.product)?),
            cause,
        }),
        Run::SetLifecycle(args) => Asked::SetLifecycle(SetLifecycleInput {
            product_id: args.product.parse()?,
            lifecycle: match args.lifecycle {
                LifecycleName::Final => Lifecycle::Final,
                LifecycleName::Revisable => Lifecycle::Revisable,
            },
            cause,
        }),
        Run::Embargo(args) => Asked::Embargo(EmbargoInput { on: args.embargo == OnOff::On, cause }),
        Run::Describe(args) => {
            let description = match (&args.what.title, &args.what.file) {
                (Some(title), _) => DescriptionChange::Title { title: [(args.language.clone(), title.clone())].into() },
                (None, Some(file)) => DescriptionChange::Replace { section: section(&origin.folder.join(file))? },
                (None, None) => return Err(Ended::usage("neither a title nor a file is given")),
            };
            Asked::Describe(DescribeInput { description, cause })
        }
        Run::Correct(args) => Asked::Correct(CorrectInput {
            to: seq(args.to)?,
            products: some(ids(&args.product)?),
            confirmed_unread: args.confirm_unread.iter().map(|n| seq(*n)).collect::<Result<_, _>>()?,
            cause,
        }),
    }))
}

fn ids<T: std::str::FromStr<Err = BadId> + Ord>(texts: &[String]) -> Result<BTreeSet<T>, Ended> {
    Ok(texts.iter().map(|text| text.parse()).collect::<Result<_, BadId>>()?)
}

fn some<T>(set: BTreeSet<T>) -> Option<BTreeSet<T>> {
    (!set.is_empty()).then_some(set)
}

fn seq(number: u64) -> Result<Seq, Ended> {
    Seq::new(number).ok_or_else(|| Ended::usage("versions are numbered from 1"))
}

/// Editions are those of one product.
fn one_product(products: &[String], editions: &[String]) -> Result<(), Ended> {
    if editions.is_empty() || products.len() == 1 {
        return Ok(());
    }
    Err(Ended::usage(format!(
        "--edition names editions of one product, and --product is given {} times; expected once",
        products.len()
    ))
    .with_hint("start one run for each product"))
}

/// The JSON object in a file.
fn section(file: &Path) -> Result<Map<String, Value>, Ended> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Ended::usage(format!("{} cannot be read: {error}", file.display())))?;
    if text.len() > PAYLOAD_LIMIT_BYTES / 2 {
        return Err(Ended::usage(format!(
            "{} has {} bytes; expected at most {}, since every version carries the description",
            file.display(),
            text.len(),
            PAYLOAD_LIMIT_BYTES / 2
        )));
    }
    serde_json::from_str(&text)
        .map_err(|error| Ended::usage(format!("{} is not a JSON object: {error}", file.display())))
}

impl Asked {
    /// The workflow.
    pub fn workflow(&self) -> &'static str {
        match self {
            Self::Release(_) => workflows::release::NAME,
            Self::Rollback(_) => workflows::rollback::NAME,
            Self::Withdraw(_) => workflows::withdraw::NAME,
            Self::Supersede(_) => workflows::supersede::NAME,
            Self::Reinstate(_) => workflows::reinstate::NAME,
            Self::Retire(_) => workflows::retire::NAME,
            Self::Reschedule(_) => workflows::reschedule::NAME,
            Self::SupersedeSchema(_) => workflows::supersede_schema::NAME,
            Self::SetLifecycle(_) => workflows::set_lifecycle::NAME,
            Self::Embargo(_) => workflows::embargo::NAME,
            Self::Describe(_) => workflows::describe::NAME,
            Self::Correct(_) => workflows::correct::NAME,
        }
    }

    /// The products that it names; none where it is about all of them, or about the catalog.
    pub fn products(&self) -> Vec<&ProductId> {
        match self {
            Self::Release(ReleaseInput { products, .. })
            | Self::Rollback(RollbackInput { products, .. })
            | Self::Retire(RetireInput { products, .. }) => products.iter().collect(),
            Self::SupersedeSchema(SupersedeSchemaInput { products, .. })
            | Self::Correct(CorrectInput { products, .. }) => products.iter().flatten().collect(),
            Self::Withdraw(WithdrawInput { product_id, .. })
            | Self::Supersede(SupersedeInput { product_id, .. })
            | Self::Reinstate(ReinstateInput { product_id, .. })
            | Self::Reschedule(RescheduleInput { product_id, .. })
            | Self::SetLifecycle(SetLifecycleInput { product_id, .. }) => vec![product_id],
            Self::Embargo(_) | Self::Describe(_) => Vec::new(),
        }
    }

    /// It in a few words.
    pub fn title(&self) -> String {
        const TOLD: usize = 3;
        let products = self.products();
        let mut words = vec![self.workflow().to_owned()];
        words.extend(products.iter().take(TOLD).map(ToString::to_string));
        if products.len() > TOLD {
            words.push(format!("and {} more", products.len() - TOLD));
        }
        words.join(" ")
    }

    /// The key that keeps others out meanwhile. What has none is settled by the catalog's rules in whatever order it comes.
    fn key(&self) -> Option<String> {
        match self {
            Self::Release(_) => Some(RELEASE_KEY.to_owned()),
            Self::Rollback(_) | Self::Withdraw(WithdrawInput { edition_id: None, .. }) | Self::Correct(_) => {
                match self.products().as_slice() {
                    // Those of one product stand in nobody else's way, also when one of them is blocked.
                    [product] => Some(format!("{TAKE_BACK_KEY}:{product}")),
                    [..] => Some(TAKE_BACK_KEY.to_owned()),
                }
            }
            Self::Withdraw(WithdrawInput { edition_id: Some(_), .. })
            | Self::Supersede(_)
            | Self::Reinstate(_)
            | Self::Retire(_)
            | Self::Reschedule(_)
            | Self::SupersedeSchema(_)
            | Self::SetLifecycle(_)
            | Self::Embargo(_)
            | Self::Describe(_) => None,
        }
    }

    fn input(&self) -> Result<Value, Ended> {
        match self {
            Self::Release(input) => to_value(input),
            Self::Rollback(input) => to_value(input),
            Self::Withdraw(input) => to_value(input),
            Self::Supersede(input) => to_value(input),
            Self::Reinstate(input) => to_value(input),
            Self::Retire(input) => to_value(input),
            Self::Reschedule(input) => to_value(input),
            Self::SupersedeSchema(input) => to_value(input),
            Self::SetLifecycle(input) => to_value(input),
            Self::Embargo(input) => to_value(input),
            Self::Describe(input) => to_value(input),
            Self::Correct(input) => to_value(input),
        }
    }

    /// Runs the newest definition of the workflow on `ctx`.
    ///
    /// # Errors
    /// What ends the workflow.
    pub async fn run_on<C: Context>(self, ctx: &mut C) -> Result<OperationOutput, Interrupt> {
        match self {
            Self::Release(input) => workflows::release::release(ctx, input).await,
            Self::Rollback(input) => workflows::rollback::rollback(ctx, input).await,
            Self::Withdraw(input) => workflows::withdraw::withdraw(ctx, input).await,
            Self::Supersede(input) => workflows::supersede::supersede(ctx, input).await,
            Self::Reinstate(input) => workflows::reinstate::reinstate(ctx, input).await,
            Self::Retire(input) => workflows::retire::retire(ctx, input).await,
            Self::Reschedule(input) => workflows::reschedule::reschedule(ctx, input).await,
            Self::SupersedeSchema(input) => workflows::supersede_schema::supersede_schema(ctx, input).await,
            Self::SetLifecycle(input) => workflows::set_lifecycle::set_lifecycle(ctx, input).await,
            Self::Embargo(input) => workflows::embargo::embargo(ctx, input).await,
            Self::Describe(input) => workflows::describe::describe(ctx, input).await,
            Self::Correct(input) => workflows::correct::correct(ctx, input).await,
        }
    }

    /// The run of it.
    ///
    /// # Errors
    /// When the input cannot be written as JSON.
    pub fn start(&self, reason: Option<String>, origin: &Origin<'_>) -> Result<StartRun, Ended> {
        let mut run = StartRun { reason, ..StartRun::new(self.workflow(), self.input()?, origin.actor.clone()) };
        if let [product] = self.products().as_slice() {
            run = run.label("product", product.as_str());
        }
        Ok(match self.key() {
            Some(key) => run.key(key, KeyPolicy::Forbid),
            None => run,
        })
    }
}

/// The run that the words of an operation ask for.
///
/// # Errors
/// Usage: words that cannot be meant, or that start no run.
pub fn operation_run(run: &Run, origin: &Origin<'_>) -> Result<StartRun, Ended> {
    let how = how(run).cloned().unwrap_or_default();
    if how.dry_run {
        return Err(Ended::usage("--dry-run starts no run, so nothing can be started by it")
            .with_hint("leave it out; a person asks for a dry run at the command line"));
    }
    match asked(run, origin)? {
        Some(asked) => asked.start(how.reason, origin),
        None => Err(Ended::usage("this is no operation on the Inventory that starts by itself: a person asks for it")),
    }
}
