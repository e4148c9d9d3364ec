//! The one writer of this process: it gathers what all runs have to write, commits it in one transaction, and answers each
//! caller after the commit (DESIGN §2.2, Group commit).

mod batch;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use sqlx::{Connection as _, SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use engine_rules::clock::Clock;

use crate::BoxFuture;
use crate::db::{BUSY_AGAIN_MS, is_busy};
use crate::error::{EngineError, WriteError, storage};

pub(crate) use batch::start_within;
pub(crate) use rows::{
    AttemptWrite, BeatWrite, ClaimedRun, Fence, NewRun, RunChange, RunWrite, StartAnswer, StepWrite, Take, TakeOver,
    TakeQueued,
};

/// How many requests one transaction takes at most: enough that the fsync costs nothing beside the rows, few enough that
/// a caller waits milliseconds.
const BATCH_REQUESTS: usize = 256;

/// How many bytes of payload one transaction takes at most, so that memory stays small with the largest payloads: 8 MiB.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// How many requests wait in the writer's queue at most; those who have more wait to be let in.
const QUEUED_REQUESTS: usize = 4096;

/// A piece of work in a transaction of its own. It may run more than once, from the beginning, so it must have no effect
/// but on the database.
pub(crate) type Exclusive =
    Box<dyn for<'c> Fn(&'c mut SqliteConnection) -> BoxFuture<'c, Result<(), sqlx::Error>> + Send + Sync>;

pub(crate) enum Request {
    Start(Box<NewRun>, oneshot::Sender<Result<StartAnswer, EngineError>>),
    Write(Box<RunWrite>, oneshot::Sender<Result<(), WriteError>>),
    Take(Take, oneshot::Sender<Result<Vec<ClaimedRun>, EngineError>>),
    Exclusive { doing: &'static str, work: Exclusive, answer: oneshot::Sender<Result<(), EngineError>> },
    Close(oneshot::Sender<()>),
}

/// The way to the writer.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    requests: mpsc::Sender<Request>,
}

impl Writer {
    /// Starts the writer on `connection`. It is a task of its own, so that nobody who stops waiting stops it.
    pub(crate) fn spawn(connection: SqliteConnection, clock: Arc<dyn Clock>) -> Self {
        let (requests, queue) = mpsc::channel(QUEUED_REQUESTS);
        tokio::spawn(WriterTask { connection, clock, queue }.run());
        Self { requests }
    }

    /// A writer that has stopped.
    pub(crate) fn closed() -> Self {
        Self { requests: mpsc::channel(1).0 }
    }

    /// Starts a run, or answers which run stands in its way.
    pub(crate) async fn start(&self, run: NewRun) -> Result<StartAnswer, EngineError> {
        let (answer, answered) = oneshot::channel();
        self.send(Request::Start(Box::new(run), answer)).await?;
        answered.await.map_err(|_| EngineError::Closed)?
    }

    /// Writes what a run has to record. It is durable when this returns `Ok`, and nothing of it is there otherwise.
    pub(crate) async fn write(&self, write: RunWrite) -> Result<(), WriteError> {
        let (answer, answered) = oneshot::channel();
        self.send(Request::Write(Box::new(write), answer)).await.map_err(WriteError::Engine)?;
        answered.await.map_err(|_| WriteError::Engine(EngineError::Closed))?
    }

    /// Takes runs from the queue or from dead owners, and answers which of them it got, oldest first.
    pub(crate) async fn take(&self, take: Take) -> Result<Vec<ClaimedRun>, EngineError> {
        let (answer, answered) = oneshot::channel();
        self.send(Request::Take(take, answer)).await?;
        answered.await.map_err(|_| EngineError::Closed)?
    }

    /// Carries out `work` in a transaction of its own, and answers what it left in its last, committed run.
    pub(crate) async fn exclusive<T, F>(&self, doing: &'static str, work: F) -> Result<T, EngineError>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, sqlx::Error>> + Send + Sync + 'static,
    {
        let result = Arc::new(std::sync::Mutex::new(None));
        let slot = result.clone();
        let work = Arc::new(work);
        let work: Exclusive = Box::new(move |connection| {
            let (slot, work) = (slot.clone(), work.clone());
            Box::pin(async move {
                let value = work(connection).await?;
                *slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(value);
                Ok(())
            })
        });
        let (answer, answered) = oneshot::channel();
        self.send(Request::Exclusive { doing, work, answer }).await?;
        answered.await.map_err(|_| EngineError::Closed)??;
        result.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take().ok_or(EngineError::Closed)
    }

    /// Ends the writer after what is queued before this.
    pub(crate) async fn close(&self) {
        let (answer, answered) = oneshot::channel();
        if self.send(Request::Close(answer)).await.is_ok() {
            let _ = answered.await;
        }
    }

    async fn send(&self, request: Request) -> Result<(), EngineError> {
        self.requests.send(request).await.map_err(|_| EngineError::Closed)
    }
}

struct WriterTask {
    connection: SqliteConnection,
    clock: Arc<dyn Clock>,
    queue: mpsc::Receiver<Request>,
}

type Starts = Vec<(Box<NewRun>, oneshot::Sender<Result<StartAnswer, EngineError>>)>;
type Writes = Vec<(Box<RunWrite>, oneshot::Sender<Result<(), WriteError>>)>;
type Taking = Option<(Take, oneshot::Sender<Result<Vec<ClaimedRun>, EngineError>>)>;

impl WriterTask {
    async fn run(mut self) {
        // What did not go into a batch goes into the next one, before anything that came later.
        let mut held: Option<Request> = None;
        loop {
            let first = match held.take() {
                Some(request) => request,
                None => match self.queue.recv().await {
                    Some(request) => request,
                    None => break,
                },
            };
            let (mut starts, mut writes, mut take): (Starts, Writes, Taking) = (Vec::new(), Vec::new(), None);
            let mut keys: HashSet<String> = HashSet::new();
            let mut bytes = 0;
            let mut next = Some(first);
            while let Some(request) = next.take() {
                match request {
                    Request::Start(run, answer) => {
                        // Two starts that stand in each other's way cannot see each other in one statement.
                        if run.exclusive_keys().any(|key| keys.contains(&key)) {
                            held = Some(Request::Start(run, answer));
                            break;
                        }
                        keys.extend(run.exclusive_keys());
                        bytes += run.payload_bytes();
                        starts.push((run, answer));
                    }
                    Request::Write(write, answer) => {
                        bytes += write.payload_bytes();
                        writes.push((write, answer));
                    }
                    Request::Take(queued, answer) if take.is_none() => take = Some((queued, answer)),
                    request @ (Request::Take(..) | Request::Exclusive { .. } | Request::Close(_)) => {
                        held = Some(request);
                        break;
                    }
                }
                if starts.len() + writes.len() < BATCH_REQUESTS && bytes < BATCH_BYTES {
                    next = self.queue.try_recv().ok();
                }
            }
            if !starts.is_empty() || !writes.is_empty() || take.is_some() {
                self.commit_batch(starts, writes, take).await;
                continue;
            }
            match held.take() {
                Some(Request::Exclusive { doing, work, answer }) => {
                    let result = self.commit_exclusive(&work).await;
                    let _ = answer.send(result.map_err(storage(doing)));
                }
                Some(Request::Close(answer)) => {
                    self.queue.close();
                    let _ = self.connection.close().await;
                    let _ = answer.send(());
                    return;
                }
                other @ (Some(Request::Start(..) | Request::Write(..) | Request::Take(..)) | None) => held = other,
            }
        }
    }

    /// Commits all of it at once; where that fails, one by one, so that a bad request fails alone.
    async fn commit_batch(&mut self, starts: Starts, writes: Writes, take: Taking) {
        let (new_runs, start_answers): (Vec<_>, Vec<_>) = starts.into_iter().unzip();
        let (run_writes, write_answers): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
        let (take, take_answer) = take.unzip();
        match self.commit_rows(&new_runs, &run_writes, take.as_ref()).await {
            Ok(done) => {
                for (answer, result) in start_answers.into_iter().zip(done.starts) {
                    let _ = answer.send(Ok(result));
                }
                for (answer, passed) in write_answers.into_iter().zip(done.passed) {
                    let _ = answer.send(if passed { Ok(()) } else { Err(WriteError::Fenced) });
                }
                if let Some(answer) = take_answer {
                    let _ = answer.send(Ok(done.taken));
                }
            }
            Err(error) => {
                let alone = new_runs.len() + run_writes.len() + usize::from(take.is_some()) == 1;
                if !alone {
                    tracing::warn!(%error, "a batch failed: its requests are tried one by one");
                }
                let mut first_error = alone.then_some(error);
                for (run, answer) in new_runs.into_iter().zip(start_answers) {
                    let result = match first_error.take() {
                        Some(error) => Err(error),
                        None => self.commit_rows(std::slice::from_ref(&run), &[], None).await,
                    };
                    let result = result.and_then(|done| done.starts.into_iter().next().ok_or(sqlx::Error::RowNotFound));
                    let _ = answer.send(result.map_err(storage("record the run")));
                }
                for (write, answer) in run_writes.into_iter().zip(write_answers) {
                    let result = match first_error.take() {
                        Some(error) => Err(error),
                        None => self.commit_rows(&[], std::slice::from_ref(&write), None).await,
                    };
                    let _ = answer.send(match result {
                        Ok(done) if done.passed.first() == Some(&true) => Ok(()),
                        Ok(_) => Err(WriteError::Fenced),
                        Err(error) => Err(WriteError::Engine(storage("record the step")(error))),
                    });
                }
                if let Some(answer) = take_answer {
                    let result = match first_error.take() {
                        Some(error) => Err(error),
                        None => self.commit_rows(&[], &[], take.as_ref()).await,
                    };
                    let result = result.map(|done| done.taken).map_err(storage("take runs"));
                    let _ = answer.send(result);
                }
            }
        }
    }

    async fn commit_rows(
        &mut self,
        starts: &[Box<NewRun>],
        writes: &[Box<RunWrite>],
        take: Option<&Take>,
    ) -> Result<batch::Done, sqlx::Error> {
        let batch = batch::Batch::new(starts, writes, take, self.clock.now_ms());
        loop {
            match batch.commit(&mut self.connection).await {
                Ok(done) => return Ok(done),
                Err(error) => self.after_error(error).await?,
            }
        }
    }

    async fn commit_exclusive(&mut self, work: &Exclusive) -> Result<(), sqlx::Error> {
        loop {
            let attempt = async {
                sqlx::query("BEGIN IMMEDIATE").execute(&mut self.connection).await?;
                work(&mut self.connection).await?;
                sqlx::query("COMMIT").execute(&mut self.connection).await?;
                Ok(())
            };
            match attempt.await {
                Ok(()) => return Ok(()),
                Err(error) => self.after_error(error).await?,
            }
        }
    }

    /// Rolls back. A busy database is waited for, however long it takes; any other error is the caller's.
    async fn after_error(&mut self, error: sqlx::Error) -> Result<(), sqlx::Error> {
        // Fails where the transaction did not begin or was rolled back by SQLite: there is then nothing to do.
        let _ = sqlx::query("ROLLBACK").execute(&mut self.connection).await;
        if is_busy(&error) {
            tracing::warn!("another process holds the state database: waiting for it");
            self.clock.sleep_ms(BUSY_AGAIN_MS).await;
            return Ok(());
        }
        Err(error)
    }
}
