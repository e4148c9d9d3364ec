//! The writer alone, on a real file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine_rules::position::Position;
use engine_rules::state::{RunState, StepState};
use sqlx::{ConnectOptions as _, Connection as _};
use uuid::Uuid;

use super::*;
use crate::clock::SystemClock;
use crate::db;
use crate::id::RunId;

fn new_run(number: u128, key: Option<&str>) -> NewRun {
    NewRun {
        run_id: RunId(Uuid::from_u128(number)),
        workflow: "w".to_owned(),
        version: 1,
        detached: false,
        input: r#"{"text":"a \"quoted\" ü\u0000\n"}"#.to_owned(),
        input_digest: "d".to_owned(),
        labels: "{}".to_owned(),
        concurrency_key: key.map(str::to_owned),
        concurrency_policy: "forbid",
        parent_run_id: None,
        origin_run_id: None,
        origin_step: None,
        schedule: None,
        actor: "jane".to_owned(),
        reason: None,
        idempotency_key: None,
        idempotency_window_ms: 0,
        owner_no: 1,
    }
}

fn step(run_no: i64, epoch: i64, top: u32, output: &str) -> RunWrite {
    let mut write = RunWrite::new(run_no, epoch);
    write.step = Some(StepWrite {
        position: Position::top(top),
        kind: "activity",
        name: "s",
        section: None,
        activity: Some("a"),
        state: StepState::Succeeded,
        input_digest: "d".to_owned(),
        input: Some(Arc::from("null")),
        output: Some(output.to_owned()),
        failure: None,
        attempt: 1,
        forgiven: 0,
        next_attempt_at_ms: None,
        started_at_ms: 1,
        ended_at_ms: Some(2),
        duration_us: Some(3),
    });
    write
}

async fn with_runs(folder: &std::path::Path, count: i64) -> Writer {
    let mut connection = db::open_writer(folder).await.expect("it opens");
    sqlx::query(
        "INSERT INTO owner (owner_id, pid, host, version, started_at_ms, lease_until_at_ms) VALUES ('o', 1, 'h', 'v', 1, 1)",
    )
    .execute(&mut connection)
    .await
    .expect("an owner");
    let writer = Writer::spawn(connection, Arc::new(SystemClock::new()));
    for number in 1..=count {
        let answer = writer.start(new_run(number.unsigned_abs().into(), None)).await.expect("it starts");
        assert_eq!(answer, StartAnswer::Started { run_no: number, state: RunState::Running });
    }
    writer
}

async fn outputs(folder: &std::path::Path) -> Vec<(i64, i64, String)> {
    let mut connection =
        sqlx::sqlite::SqliteConnectOptions::new().filename(db::path(folder)).connect().await.expect("it opens");
    let rows = sqlx::query_as("SELECT run_no, top, output FROM step ORDER BY run_no, top")
        .fetch_all(&mut connection)
        .await
        .expect("the steps");
    connection.close().await.expect("it closes");
    rows
}

/// Holds the writer up, so that what comes meanwhile goes into one batch.
async fn held_up(folder: &std::path::Path, writer: &Writer, during: impl Future<Output = ()>) {
    let mut other =
        sqlx::sqlite::SqliteConnectOptions::new().filename(db::path(folder)).connect().await.expect("it opens");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock is free");
    let blocked = {
        let writer = writer.clone();
        tokio::spawn(async move { writer.exclusive("wait", |_| Box::pin(async { Ok(()) })).await })
    };
    // The writer now waits for the lock with the first request; the others queue behind it.
    SystemClock::new().sleep_ms(50).await;
    let commit = async {
        SystemClock::new().sleep_ms(50).await;
        sqlx::query("COMMIT").execute(&mut other).await.expect("the lock is given back");
    };
    tokio::join!(during, commit);
    blocked.await.expect("no panic").expect("it was done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_request_fails_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = with_runs(folder.path(), 40).await;
    held_up(folder.path(), &writer, async {
        let mut flight = tokio::task::JoinSet::new();
        for run_no in 1..=40 {
            let writer = writer.clone();
            flight.spawn(async move {
                let mut write = step(run_no, 1, 1, &format!("{run_no}"));
                if run_no == 20 {
                    // The journal's schema knows no such kind.
                    write.step.as_mut().expect("a step").kind = "nonsense";
                }
                // Another owner took this one over.
                if run_no == 30 {
                    write.epoch = 0;
                }
                (run_no, writer.write(write).await)
            });
        }
        for (run_no, result) in flight.join_all().await {
            match run_no {
                20 => assert!(matches!(result, Err(WriteError::Engine(EngineError::Storage { .. }))), "{result:?}"),
                30 => assert!(matches!(result, Err(WriteError::Fenced)), "{result:?}"),
                _ => assert!(result.is_ok(), "{run_no}: {result:?}"),
            }
        }
    })
    .await;
    let expected: Vec<_> = (1..=40).filter(|n| ![20, 30].contains(n)).map(|n| (n, 1, format!("{n}"))).collect();
    assert_eq!(outputs(folder.path()).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_parts_of_a_request_are_written_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = with_runs(folder.path(), 1).await;
    let mut write = step(1, 1, 1, "1");
    write.attempt = Some(AttemptWrite {
        position: Position::top(1),
        attempt: 1,
        outcome: "nonsense",
        failure: None,
        started_at_ms: None,
        ended_at_ms: None,
        duration_us: None,
    });
    assert!(matches!(writer.write(write).await, Err(WriteError::Engine(_))));
    assert_eq!(outputs(folder.path()).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_written_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = with_runs(folder.path(), 1).await;
    writer.write(step(1, 1, 1, "1")).await.expect("it is written");
    assert!(matches!(writer.write(step(1, 1, 1, "2")).await, Err(WriteError::Engine(_))));
    let mut end = RunWrite::new(1, 1);
    let output = Some("1".to_owned());
    end.run = Some(RunChange { output, ended_at_ms: Some(3), ..RunChange::to(RunState::Succeeded) });
    writer.write(end).await.expect("it ends");
    assert!(matches!(writer.write(step(1, 1, 2, "2")).await, Err(WriteError::Fenced)), "it has ended");
    assert_eq!(outputs(folder.path()).await, [(1, 1, "1".to_owned())]);
}

/// What stands in a text never ends it: quotation marks, a zero, the largest payload.
#[tokio::test(flavor = "multi_thread")]
async fn texts_come_back_as_they_were() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = with_runs(folder.path(), 1).await;
    let texts =
        [r#""\"; DROP TABLE run; --""#.to_owned(), "\"\u{1}\u{fffd}ü😀\\u0000\"".to_owned(), "x".repeat(1 << 20)];
    for (top, text) in (1..).zip(&texts) {
        writer.write(step(1, 1, top, text)).await.expect("it is written");
    }
    let found: Vec<_> = outputs(folder.path()).await.into_iter().map(|(_, _, output)| output).collect();
    assert!(found == texts, "a text changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_of_one_batch_do_not_overlook_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = with_runs(folder.path(), 0).await;
    held_up(folder.path(), &writer, async {
        let mut flight = tokio::task::JoinSet::new();
        for number in 1..=20 {
            let writer = writer.clone();
            let key = if number % 2 == 0 { "even" } else { "odd" };
            flight.spawn(async move { (key, writer.start(new_run(number, Some(key))).await.expect("answered")) });
        }
        let answers = flight.join_all().await;
        for key in ["even", "odd"] {
            let of_key = answers.iter().filter(|(found, _)| *found == key);
            let started = of_key.filter(|(_, answer)| matches!(answer, StartAnswer::Started { .. })).count();
            assert_eq!(started, 1, "{key}: {answers:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_starts_one_run_of_a_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = with_runs(folder.path(), 0).await;
    held_up(folder.path(), &writer, async {
        let mut flight = tokio::task::JoinSet::new();
        for number in 1..=20 {
            let writer = writer.clone();
            let once = NewRun {
                idempotency_key: Some("k".to_owned()),
                idempotency_window_ms: 60_000,
                ..new_run(number, None)
            };
            flight.spawn(async move { writer.start(once).await.expect("answered") });
        }
        let answers = flight.join_all().await;
        let started = answers.iter().filter(|answer| matches!(answer, StartAnswer::Started { .. })).count();
        assert_eq!(started, 1, "{answers:?}");
    })
    .await;
}

/// SQLite's own waiting ends after a while; the engine's does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_held_longer_than_sqlite_waits_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(with_runs(folder.path(), 1).await);
    let mut connection = db::open_writer(folder.path()).await.expect("it opens");
    sqlx::query("PRAGMA busy_timeout = 1").execute(&mut connection).await.expect("a pragma");
    let writer = Writer::spawn(connection, Arc::new(SystemClock::new()));
    held_up(folder.path(), &writer, async {
        writer.write(step(1, 1, 1, "1")).await.expect("it is written in the end");
    })
    .await;
    let mut other =
        sqlx::sqlite::SqliteConnectOptions::new().filename(db::path(folder.path())).connect().await.expect("it opens");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock is free");
    let give_back = async {
        SystemClock::new().sleep_ms(100).await;
        sqlx::query("COMMIT").execute(&mut other).await.expect("the lock is given back");
    };
    let (written, ()) = tokio::join!(writer.write(step(1, 1, 2, "2")), give_back);
    written.expect("it is written in the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_queued_is_written_before_the_writer_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = with_runs(folder.path(), 1).await;
    let (written, ()) = tokio::join!(writer.write(step(1, 1, 1, "1")), writer.close());
    written.expect("it was asked for first");
    assert!(matches!(writer.write(step(1, 1, 2, "2")).await, Err(WriteError::Engine(EngineError::Closed))));
    assert_eq!(outputs(folder.path()).await, [(1, 1, "1".to_owned())]);
}

/// Also one that reads first: what it reads is what it writes upon.
#[tokio::test(flavor = "multi_thread")]
async fn exclusive_work_begins_only_once_nobody_else_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = with_runs(folder.path(), 1).await;
    let mut other =
        sqlx::sqlite::SqliteConnectOptions::new().filename(db::path(folder.path())).connect().await.expect("it opens");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock is free");
    let begun = Arc::new(AtomicU32::new(0));
    let counted = begun.clone();
    let working = tokio::spawn({
        let writer = writer.clone();
        async move {
            let reads_and_writes = writer.exclusive("read, then write", move |connection| {
                counted.fetch_add(1, Ordering::SeqCst);
                Box::pin(async move {
                    let read: String = sqlx::query_scalar("SELECT coalesce(reason, 'none') FROM run")
                        .fetch_one(&mut *connection)
                        .await?;
                    sqlx::query("UPDATE run SET failed_step = reason").execute(connection).await?;
                    Ok(read)
                })
            });
            reads_and_writes.await
        }
    });
    SystemClock::new().sleep_ms(100).await;
    assert_eq!(begun.load(Ordering::SeqCst), 0, "it would read what is about to change");
    sqlx::query("UPDATE run SET reason = 'changed'").execute(&mut other).await.expect("it changes");
    sqlx::query("COMMIT").execute(&mut other).await.expect("the lock is given back");
    let read = working.await.expect("no panic").expect("it is done");
    assert_eq!((read.as_str(), begun.load(Ordering::SeqCst)), ("changed", 1));
}
