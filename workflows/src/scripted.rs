//! A context whose answers are written down beforehand.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};

use engine_rules::context::{ChildDef, ChildEnd, ChildStart, Context, Interrupt, StepDef};
use engine_rules::failure::{Disposition, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

/// Runs a future whose every part is ready.
pub fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a scripted step waited"),
    }
}

/// Answers each step in turn and keeps what it was asked.
#[derive(Debug, Default)]
pub struct Scripted {
    answers: VecDeque<(&'static str, Result<Value, Interrupt>)>,
    /// The steps asked for: name and input.
    pub asked: Vec<(&'static str, Value)>,
}

impl Scripted {
    pub fn answer(mut self, step: &'static str, output: Value) -> Self {
        self.answers.push_back((step, Ok(output)));
        self
    }

    pub fn fail(self, step: &'static str, code: &str) -> Self {
        self.fail_as(step, code, Disposition::Terminal)
    }

    pub fn fail_as(mut self, step: &'static str, code: &str, disposition: Disposition) -> Self {
        let failure =
            Failure { code: code.to_owned(), message: format!("{step} was refused"), disposition, hint: None };
        self.answers.push_back((step, Err(Interrupt::Failed(failure))));
        self
    }

    pub fn cancel(mut self, step: &'static str) -> Self {
        self.answers.push_back((step, Err(Interrupt::Cancelled)));
        self
    }

    pub fn suspend(mut self, step: &'static str) -> Self {
        self.answers.push_back((step, Err(Interrupt::Suspended)));
        self
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.asked.iter().map(|(name, _)| *name).collect()
    }
}

impl Scripted {
    fn next<O: DeserializeOwned>(&mut self, name: &'static str, input: Value) -> Result<O, Interrupt> {
        self.asked.push((name, input));
        let (expected, answer) = self.answers.pop_front().unwrap_or_else(|| panic!("{name} was not expected"));
        assert_eq!(name, expected, "the steps came in another order");
        answer.map(|output| serde_json::from_value(output).unwrap())
    }
}

impl Context for Scripted {
    async fn step<I, O>(&mut self, step: &StepDef<I, O>, input: &I) -> Result<O, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        self.next(step.name, serde_json::to_value(input).unwrap())
    }

    async fn now_ms(&mut self) -> Result<i64, Interrupt> {
        self.next("now_ms", Value::Null)
    }

    async fn new_id(&mut self) -> Result<Uuid, Interrupt> {
        self.next("new_id", Value::Null)
    }

    async fn sleep_until(&mut self, name: &'static str, at_ms: i64) -> Result<(), Interrupt> {
        self.next(name, Value::from(at_ms))
    }

    async fn signal<T>(&mut self, name: &'static str, deadline_at_ms: Option<i64>) -> Result<Option<T>, Interrupt>
    where
        T: Serialize + DeserializeOwned + Send,
    {
        self.next(name, Value::from(deadline_at_ms))
    }

    async fn child<I, O>(&mut self, def: &ChildDef<I, O>, child: &ChildStart<I>) -> Result<O, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        self.next(def.name, serde_json::to_value(child).unwrap())
    }

    async fn fan_out<I, O>(
        &mut self,
        def: &ChildDef<I, O>,
        children: &[ChildStart<I>],
        _limit: u32,
    ) -> Result<Vec<ChildEnd<O>>, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        self.next(def.name, serde_json::to_value(children).unwrap())
    }

    async fn begin_section(&mut self, name: &str) -> Result<u32, Interrupt> {
        self.next("begin_section", Value::from(name))
    }

    async fn end_section(&mut self) -> Result<(), Interrupt> {
        self.next("end_section", Value::Null)
    }
}
