//! A dry run: the same workflow and the same activities, on a catalog whose writes are only imagined.

use std::collections::BTreeMap;
use std::sync::Arc;

use activities::store::OverlayStore;
use catalog_rules::contracts::operations::OperationOutput;
use catalog_rules::instant::Instant;
use engine_rules::clock::Clock;
use engine_rules::context::{ChildDef, ChildEnd, ChildStart, Context, Interrupt, StepDef};
use engine_rules::failure::{Disposition, Failure};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::exit::{Ended, Exit};
use crate::output::{Output, moment};
use crate::start::Asked;
use crate::terminal::{tell_operation, version_outcome};
use crate::wire::{Imagined, World};

/// Says what the operation would do now, or at the time `at`. Nothing of the catalog and of the state changes.
///
/// # Errors
/// The rule that refuses the operation, or what the catalog cannot be read for.
pub async fn run(world: &World, out: Output, asked: Asked, at: Option<Timestamp>) -> Result<Exit, Ended> {
    let (command, title) = (format!("run.{}", asked.workflow()), asked.title());
    let overlay = OverlayStore::over(Arc::clone(&world.store));
    let overlay = match at {
        Some(at) => overlay.at(Instant::from_ms(at.as_millisecond())),
        None => overlay,
    };
    let mut ctx = DryContext {
        activities: world.imagined(Arc::new(overlay)),
        clock: Arc::clone(&world.clock),
        run_id: world.clock.new_id().to_string(),
    };
    let when = at.map(|at| format!(" at {}", moment(at.as_millisecond()))).unwrap_or_default();
    out.line(format!("dry run of {title}{when}: nothing is changed"));
    let (state, output, failure, exit) = match asked.run_on(&mut ctx).await {
        Ok(output) => {
            let exit = tell_operation(out, &output);
            out.line(format!("would be: {}", version_outcome(&output.version)));
            ("would_succeed", Some(output), None, exit)
        }
        Err(Interrupt::Failed(failure)) => {
            let exit = Exit::of(&failure);
            ("would_fail", None, Some(failure), exit)
        }
        Err(Interrupt::Cancelled | Interrupt::Suspended) => {
            return Err(Ended::usage("the dry run came to a point that it cannot imagine"));
        }
    };
    out.line("nothing was changed");
    out.document(&command, document(state, output.as_ref(), failure.as_ref(), exit));
    if let Some(failure) = failure.filter(|_| !out.is_json()) {
        out.ended(&Ended::from(failure));
    }
    Ok(exit)
}

/// The output without what only a version has that is written.
fn planned(output: &OperationOutput) -> Value {
    let mut output = json!(output);
    if let Some(fields) = output.as_object_mut() {
        fields.remove("root_sha256");
    }
    output
}

fn document(state: &str, output: Option<&OperationOutput>, failure: Option<&Failure>, exit: Exit) -> Value {
    json!({
        "dry_run": true,
        "run_id": null,
        "state": state,
        "output": output.map(planned),
        "failure": failure,
        "exit_code": exit as u8,
    })
}

/// A context that carries each step out at once, records nothing and tries nothing twice.
struct DryContext {
    activities: BTreeMap<&'static str, Imagined>,
    clock: Arc<dyn Clock>,
    run_id: String,
}

/// What a dry run cannot tell.
fn not_imagined(what: &str) -> Interrupt {
    Interrupt::Failed(Failure {
        code: "engine.not_imagined".to_owned(),
        message: format!("a dry run cannot tell what would become of {what}"),
        disposition: Disposition::Terminal,
        hint: None,
    })
}

impl Context for DryContext {
    async fn step<I, O>(&mut self, step: &StepDef<I, O>, input: &I) -> Result<O, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        let unfit = |error: serde_json::Error| not_imagined(&format!("step {}: {error}", step.name));
        let activity = self.activities.get(step.activity).ok_or_else(|| not_imagined(step.name))?;
        let input = serde_json::to_value(input).map_err(unfit)?;
        let output = activity(&self.run_id, step.name, input).map_err(Interrupt::Failed)?;
        serde_json::from_value(output).map_err(unfit)
    }

    async fn now_ms(&mut self) -> Result<i64, Interrupt> {
        Ok(self.clock.now_ms())
    }

    async fn new_id(&mut self) -> Result<Uuid, Interrupt> {
        Ok(self.clock.new_id())
    }

    async fn sleep_until(&mut self, _name: &'static str, _at_ms: i64) -> Result<(), Interrupt> {
        Ok(())
    }

    async fn signal<T>(&mut self, name: &'static str, _deadline_at_ms: Option<i64>) -> Result<Option<T>, Interrupt>
    where
        T: Serialize + DeserializeOwned + Send,
    {
        Err(not_imagined(name))
    }

    async fn child<I, O>(&mut self, def: &ChildDef<I, O>, _child: &ChildStart<I>) -> Result<O, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        Err(not_imagined(def.name))
    }

    async fn fan_out<I, O>(
        &mut self,
        def: &ChildDef<I, O>,
        _children: &[ChildStart<I>],
        _limit: u32,
    ) -> Result<Vec<ChildEnd<O>>, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        Err(not_imagined(def.name))
    }

    async fn begin_section(&mut self, _name: &'static str) -> Result<u32, Interrupt> {
        Ok(1)
    }

    async fn end_section(&mut self) -> Result<(), Interrupt> {
        Ok(())
    }
}
