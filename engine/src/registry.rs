//! Which function carries out which name.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;

use engine_rules::activity::ActivityContext;
use engine_rules::context::Interrupt;
use engine_rules::digest::canonical_json;
use engine_rules::failure::{ActivityError, Disposition, Failure};
use engine_rules::limits::{bounded, check_payload};
use engine_rules::replay::Mint;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::BoxFuture;
use crate::catch::panic_message;
use crate::context::EngineContext;

pub(crate) type WorkflowHandler =
    Arc<dyn for<'a> Fn(&'a mut EngineContext, &'a str) -> BoxFuture<'a, Result<String, WorkflowEnd>> + Send + Sync>;
type InputCheck = Arc<dyn Fn(&str) -> Result<(), Failure> + Send + Sync>;
type ActivityFunction =
    Arc<dyn Fn(ActivityContext, Arc<str>) -> BoxFuture<'static, Result<String, Failure>> + Send + Sync>;

/// What carries out an activity.
#[derive(Clone)]
pub(crate) struct ActivityHandler {
    pub function: ActivityFunction,
    /// It runs on a thread of its own, which nothing can end from outside.
    pub is_blocking: bool,
}

/// Why a workflow gave no output.
pub(crate) enum WorkflowEnd {
    /// It returned an interrupt.
    Interrupt(Interrupt),
    /// Its input or output does not fit its types or the journal.
    Unfit(Failure),
}

/// A function that can be a workflow: an `async fn` over [`EngineContext`] and an input. Implemented for every such
/// function; the lifetime lets it borrow the context while it waits.
pub trait WorkflowFn<'a, I, O>: Send + Sync {
    /// What it returns.
    type Running: Future<Output = Result<O, Interrupt>> + Send + 'a;
    /// Calls it.
    fn call(&self, ctx: &'a mut EngineContext, input: I) -> Self::Running;
}

impl<'a, I, O, F, R> WorkflowFn<'a, I, O> for F
where
    F: Fn(&'a mut EngineContext, I) -> R + Send + Sync,
    R: Future<Output = Result<O, Interrupt>> + Send + 'a,
{
    type Running = R;

    fn call(&self, ctx: &'a mut EngineContext, input: I) -> R {
        self(ctx, input)
    }
}

/// Joins the names of workflows and activities to the functions that carry them out.
#[derive(Clone, Default)]
pub struct Registry {
    workflows: BTreeMap<String, BTreeMap<u32, Definition>>,
    activities: HashMap<String, ActivityHandler>,
    mints: BTreeMap<String, Vec<Mint>>,
}

/// One version of a workflow.
#[derive(Clone)]
struct Definition {
    handler: WorkflowHandler,
    /// Whether a text is an input of it.
    accepts: InputCheck,
}

impl Registry {
    /// A registry without names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `function` is definition `version` of the workflow `name`: `registry.workflow("publish", 1,
    /// publish::<EngineContext>)`. New runs start under the highest version of a name; a run goes on under the version
    /// that it started with, or is blocked when this program no longer has it.
    pub fn workflow<I, O, F>(&mut self, name: &str, version: u32, function: F) -> &mut Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        F: for<'a> WorkflowFn<'a, I, O> + 'static,
    {
        let function = Arc::new(function);
        let workflow = name.to_owned();
        let handler: WorkflowHandler = Arc::new(move |ctx, input| {
            let function = function.clone();
            let workflow = workflow.clone();
            Box::pin(async move {
                let input = serde_json::from_str(input)
                    .map_err(|error| WorkflowEnd::Unfit(unreadable_input("workflow", &workflow, &error)))?;
                let output = function.call(ctx, input).await.map_err(WorkflowEnd::Interrupt)?;
                encode("workflow", &workflow, &output).map_err(WorkflowEnd::Unfit)
            })
        });
        let workflow = name.to_owned();
        let accepts: InputCheck = Arc::new(move |input| match serde_json::from_str::<I>(input) {
            Ok(_) => Ok(()),
            Err(error) => Err(unreadable_input("workflow", &workflow, &error)),
        });
        self.workflows.entry(name.to_owned()).or_default().insert(version, Definition { handler, accepts });
        self
    }

    /// The step `minting_step` of `workflow` names something new each time that it is carried out (an edition id), and
    /// once `used_up_at_step` was carried out the name stands for something that exists. A replay that begins at or before
    /// that step carries `minting_step` out anew; one that begins after it carries the name over.
    pub fn mints(&mut self, workflow: &str, minting_step: &str, used_up_at_step: &str) -> &mut Self {
        let mint = Mint { minting_step: minting_step.to_owned(), used_up_at_step: used_up_at_step.to_owned() };
        self.mints.entry(workflow.to_owned()).or_default().push(mint);
        self
    }

    /// `function` carries out the activity `name`. It runs on the runtime's own threads, so it must not block for more
    /// than a few milliseconds at a time; what computes or reads files for long is a [`Registry::blocking_activity`].
    /// A panic is a failure that blocks the run.
    pub fn activity<I, O, E, F, R>(&mut self, name: &str, function: F) -> &mut Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        E: ActivityError + Send + 'static,
        F: Fn(ActivityContext, I) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
    {
        let function = Arc::new(function);
        let activity = name.to_owned();
        let handler: ActivityFunction = Arc::new(move |ctx, input| {
            let function = function.clone();
            let activity = activity.clone();
            Box::pin(async move {
                let input =
                    serde_json::from_str(&input).map_err(|error| unreadable_input("activity", &activity, &error))?;
                let output = function(ctx, input).await.map_err(|error| recorded(&error))?;
                encode("activity", &activity, &output)
            })
        });
        self.activities.insert(name.to_owned(), ActivityHandler { function: handler, is_blocking: false });
        self
    }

    /// `function` carries out the activity `name`, on a thread of its own, and may block as long as it likes. It should
    /// look at [`ActivityContext::cancel`] between units of work. A panic is a failure that blocks the run.
    pub fn blocking_activity<I, O, E, F>(&mut self, name: &str, function: F) -> &mut Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        E: ActivityError + Send + 'static,
        F: Fn(ActivityContext, I) -> Result<O, E> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        let activity = name.to_owned();
        let handler: ActivityFunction = Arc::new(move |ctx, input| {
            let function = function.clone();
            let activity = activity.clone();
            Box::pin(async move {
                let body = move || {
                    let input = serde_json::from_str(&input)
                        .map_err(|error| unreadable_input("activity", &activity, &error))?;
                    let output = function(ctx, input).map_err(|error| recorded(&error))?;
                    encode("activity", &activity, &output)
                };
                match tokio::task::spawn_blocking(body).await {
                    Ok(result) => result,
                    Err(error) => Err(panicked(&match error.try_into_panic() {
                        Ok(panic) => panic_message(panic.as_ref()),
                        Err(error) => error.to_string(),
                    })),
                }
            })
        });
        self.activities.insert(name.to_owned(), ActivityHandler { function: handler, is_blocking: true });
        self
    }

    /// The names of the workflows.
    pub fn workflow_names(&self) -> impl Iterator<Item = &str> {
        self.workflows.keys().map(String::as_str)
    }

    pub(crate) fn newest_version(&self, workflow: &str) -> Option<u32> {
        self.workflows.get(workflow).and_then(|versions| versions.keys().next_back().copied())
    }

    pub(crate) fn versions(&self, workflow: &str) -> Vec<u32> {
        self.workflows.get(workflow).map(|versions| versions.keys().copied().collect()).unwrap_or_default()
    }

    pub(crate) fn find_workflow(&self, name: &str, version: u32) -> Option<WorkflowHandler> {
        self.definition(name, version).map(|definition| definition.handler.clone())
    }

    fn definition(&self, name: &str, version: u32) -> Option<&Definition> {
        self.workflows.get(name).and_then(|versions| versions.get(&version))
    }

    /// Why `input` is none of the workflow's.
    pub(crate) fn check_input(&self, name: &str, version: u32, input: &str) -> Result<(), Failure> {
        self.definition(name, version).map_or(Ok(()), |definition| (definition.accepts)(input))
    }

    pub(crate) fn minted_by(&self, workflow: &str) -> &[Mint] {
        self.mints.get(workflow).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn find_activity(&self, name: &str) -> Option<ActivityHandler> {
        self.activities.get(name).cloned()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let workflows: Vec<_> = self.workflows.iter().map(|(name, versions)| (name, versions.keys())).collect();
        f.debug_struct("Registry").field("workflows", &workflows).field("activities", &self.activities.keys()).finish()
    }
}

/// The failure of an activity as it is recorded, with texts of a size that a journal can hold.
fn recorded(error: &dyn ActivityError) -> Failure {
    bounded(error.to_failure())
}

/// The failure of a step whose body panicked: a fault of this program, which trying again does not mend.
pub(crate) fn panicked(message: &str) -> Failure {
    bounded(Failure {
        code: "engine.panic".to_owned(),
        message: format!("the code of this step panicked: {message}"),
        disposition: Disposition::Operator,
        hint: Some("report this; jobctl runs resume RUN tries the step again, also with a mended program".to_owned()),
    })
}

/// The code of an input that the program's type does not hold.
pub(crate) const INPUT_UNREADABLE: &str = "engine.input_unreadable";

fn unreadable_input(what: &str, name: &str, error: &serde_json::Error) -> Failure {
    // What the parser says may hold the whole input.
    bounded(Failure {
        code: INPUT_UNREADABLE.to_owned(),
        message: format!("the input does not fit the {what} {name}: {error}"),
        disposition: Disposition::Terminal,
        hint: None,
    })
}

/// `output` as JSON text, refused when the journal does not hold as much. Canonical, so that the order in which a map gives
/// its entries never enters the journal.
fn encode<O: Serialize>(what: &str, name: &str, output: &O) -> Result<String, Failure> {
    let value = serde_json::to_value(output).map_err(|error| {
        bounded(Failure {
            code: "engine.output_unwritable".to_owned(),
            message: format!("the output of the {what} {name} cannot be written as JSON: {error}"),
            disposition: Disposition::Terminal,
            hint: None,
        })
    })?;
    let text = canonical_json(&value);
    check_payload(format!("the output of the {what} {name}"), text.len()).map_err(|error| recorded(&error))?;
    Ok(text)
}
