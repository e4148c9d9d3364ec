//! `jobctl schedules …`: when the schedules fire, what became of their ticks, and what a person does about them.

mod show;

use std::collections::BTreeMap;

use engine::{Engine, EngineError, Mutation, Reader, ScheduleDef, ScheduleRow, TickFilter, find_time_zone};
use engine_rules::failure::ActivityError as _;
use engine_rules::schedule::{CronExpression, Cursor, ON_TIME_TOLERANCE_MS, Tick, Ticks, Timing};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::json;

use self::show::{local, note, tick_document, tick_row_document, utc};
use super::publish::{busy, stay};
use super::reason::reason as why;
use super::when;
use crate::args::Schedules;
use crate::exit::{Ended, Exit};
use crate::output::{Output, moment, short};
use crate::wire::{World, engine_error};

/// Carries out `jobctl schedules …`.
///
/// # Errors
/// An unknown schedule, a time or expression that cannot be meant, or what the engine fails with.
pub async fn schedules(world: &World, out: Output, args: Schedules) -> Result<Exit, Ended> {
    match args {
        Schedules::List => list(world, out).await,
        Schedules::Next { name, limit } => next(world, out, name.as_deref(), limit).await,
        Schedules::Preview { cron, time_zone, from, limit } => {
            preview(world, out, &cron, &time_zone, from.as_deref(), limit)
        }
        Schedules::Pause { name, reason } => pause(world, out, &name, why(out, reason)?).await,
        Schedules::Resume { name, reason } => resume(world, out, &name, why(out, reason)?).await,
        Schedules::Trigger { name, reason, detach } => trigger(world, out, &name, why(out, reason)?, detach).await,
        Schedules::Ticks { name, skipped, limit } => ticks(world, out, name, skipped, limit).await,
    }
}

/// A schedule of the configuration, with what the state database knows of it.
struct Known<'a> {
    definition: &'a ScheduleDef,
    timing: Timing,
    row: Option<ScheduleRow>,
}

impl Known<'_> {
    /// Whether the state database has it as the configuration does.
    fn is_loaded(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.fits(self.definition))
    }

    fn is_paused(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.paused_at_ms.is_some() && row.removed_at_ms.is_none())
    }

    /// How far its ticks were decided.
    fn cursor(&self) -> Option<Cursor> {
        self.row.as_ref().filter(|_| self.is_loaded()).and_then(|row| row.cursor(&self.timing.time_zone))
    }

    /// The ticks from now on; where the clock went back, none that was decided.
    fn upcoming(&self, now: Timestamp) -> Ticks<'_> {
        let from_now = Cursor::now(now, &self.timing.time_zone);
        let cursor = self.cursor().filter(|cursor| cursor.at > now).unwrap_or(from_now);
        self.timing.ticks_after(cursor)
    }

    /// How far its ticks were decided, where that is in the future.
    fn ahead(&self, now: Timestamp) -> Option<Cursor> {
        self.cursor().filter(|cursor| cursor.at.as_millisecond() - now.as_millisecond() > ON_TIME_TOLERANCE_MS)
    }

    /// How it stands, in a word and in words.
    fn stands(&self, now: Timestamp) -> (&'static str, String) {
        if let Some(row) = self.row.as_ref().filter(|_| self.is_paused()) {
            return ("paused", show::paused(row));
        }
        if !self.is_loaded() {
            return ("not loaded", "jobctl serve loads the configuration when it starts".to_owned());
        }
        if let Some(cursor) = self.ahead(now) {
            let why = format!(
                "the clock went back after ticks up to {} were decided; until then jobctl schedules trigger {} --reason … \
                 starts a run",
                cursor.local_text(),
                self.definition.name
            );
            return ("ahead", why);
        }
        match self.overdue(now) {
            Some(tick) => ("overdue", format!("the tick {} is not decided: is jobctl serve running?", tick.id())),
            None => ("on", String::new()),
        }
    }

    /// A tick that should have been decided by now.
    fn overdue(&self, now: Timestamp) -> Option<Tick> {
        let late = |tick: &Tick| now.as_millisecond() - tick.at.as_millisecond() > ON_TIME_TOLERANCE_MS;
        self.timing.ticks_after(self.cursor()?).next().filter(late)
    }
}

fn now(world: &World) -> Timestamp {
    Timestamp::from_millisecond(world.clock.now_ms()).unwrap_or(Timestamp::UNIX_EPOCH)
}

async fn reader(world: &World) -> Result<Option<Reader>, Ended> {
    match Reader::open(&world.config.state, world.clock.clone()).await {
        Ok(reader) => Ok(Some(reader)),
        Err(EngineError::NoState { .. }) => Ok(None),
        Err(error) => Err(engine_error(&error)),
    }
}

/// The schedules of the configuration, and those that only the state database still has.
async fn known(world: &World) -> Result<(Vec<Known<'_>>, Vec<ScheduleRow>), Ended> {
    let rows = match reader(world).await? {
        Some(reader) => reader.schedules().await.map_err(|error| engine_error(&error))?,
        None => Vec::new(),
    };
    let mut rows: BTreeMap<String, ScheduleRow> = rows.into_iter().map(|row| (row.name.clone(), row)).collect();
    let known = world.config.schedules.iter().map(|definition| {
        let timing = definition.timing().map_err(|error| engine_error(&error))?;
        Ok(Known { definition, timing, row: rows.remove(&definition.name) })
    });
    let known = known.collect::<Result<_, Ended>>()?;
    Ok((known, rows.into_values().collect()))
}

fn no_schedules(world: &World, out: Output) {
    let file = match &world.config.file {
        Some(file) => file.display().to_string(),
        None => crate::config::FILE_NAME.to_owned(),
    };
    out.line(format!("no schedules: {file} has no table [schedules.<name>]"));
}

async fn list(world: &World, out: Output) -> Result<Exit, Ended> {
    let (known, left) = known(world).await?;
    let now = now(world);
    let mut table = Vec::new();
    let mut documents = Vec::new();
    for schedule in &known {
        let definition = schedule.definition;
        let next = schedule.upcoming(now).next();
        let overdue = schedule.overdue(now);
        let row = schedule.row.as_ref();
        let paused = row.filter(|_| schedule.is_paused());
        let (state, mut why) = schedule.stands(now);
        let last = row.and_then(|row| row.last_tick.as_ref());
        if let Some(held) = last.filter(|tick| why.is_empty() && tick.holder_run_id.is_some()) {
            why = show::held(held);
        }
        table.push([
            definition.name.clone(),
            definition.cron.clone(),
            definition.time_zone.clone(),
            next.as_ref().map(local).unwrap_or_default(),
            state.to_owned(),
            last.map(|tick| format!("{} {}", tick.local_time, tick.outcome)).unwrap_or_default(),
            why,
        ]);
        documents.push(json!({
            "name": definition.name,
            "workflow": definition.workflow,
            "product": definition.labels.get("product"),
            "labels": definition.labels,
            "input": definition.input,
            "cron": definition.cron,
            "follows": schedule.timing.cron.kind().as_str(),
            "time_zone": definition.time_zone,
            "misfire": definition.misfire.as_str(),
            "catch_up_minutes": definition.catch_up_ms / 60_000,
            "concurrency_key": definition.concurrency_key,
            "concurrency_policy": definition.key_policy.as_str(),
            "state": state,
            "paused": paused.map(show::paused_document),
            "overdue": overdue.as_ref().map(|tick| tick_document(&definition.name, &definition.time_zone, tick)),
            "next": next.as_ref().map(|tick| tick_document(&definition.name, &definition.time_zone, tick)),
            "last_tick": last.map(tick_row_document),
        }));
    }
    for row in &left {
        let (state, why) = match row.removed_at_ms {
            Some(at_ms) => ("removed", format!("left the configuration {}", moment(at_ms))),
            None => ("left", "it is not in the configuration: jobctl serve removes it when it starts".to_owned()),
        };
        let last = row.last_tick.as_ref();
        table.push([
            row.name.clone(),
            row.cron.clone(),
            row.time_zone.clone(),
            String::new(),
            state.to_owned(),
            last.map(|tick| format!("{} {}", tick.local_time, tick.outcome)).unwrap_or_default(),
            why,
        ]);
        documents.push(json!({
            "name": row.name,
            "workflow": row.workflow,
            "product": row.labels.get("product"),
            "labels": row.labels,
            "input": row.input,
            "cron": row.cron,
            "time_zone": row.time_zone,
            "misfire": row.misfire,
            "catch_up_minutes": row.catch_up_ms / 60_000,
            "concurrency_key": row.concurrency_key,
            "concurrency_policy": row.concurrency_policy,
            "state": state,
            "removed_at": row.removed_at_ms.map(show::instant),
            "last_tick": last.map(tick_row_document),
        }));
    }
    if table.is_empty() {
        no_schedules(world, out);
    } else {
        out.table(["SCHEDULE", "CRON", "ZONE", "NEXT", "STATE", "LAST TICK", "WHY"], table);
    }
    out.document("schedules.list", json!({ "schedules": documents }));
    Ok(Exit::Done)
}

async fn next(world: &World, out: Output, name: Option<&str>, limit: u32) -> Result<Exit, Ended> {
    let (known, _) = known(world).await?;
    if let Some(name) = name
        && !known.iter().any(|schedule| schedule.definition.name == name)
    {
        return Err(unknown(name, known.iter().map(|schedule| schedule.definition.name.clone())));
    }
    let now = now(world);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let chosen = known.iter().filter(|schedule| name.is_none_or(|name| schedule.definition.name == name));
    let mut firings: Vec<(&Known<'_>, Tick)> =
        chosen.flat_map(|schedule| schedule.upcoming(now).take(limit).map(move |tick| (schedule, tick))).collect();
    firings.sort_by_key(|(_, tick)| tick.at);
    firings.truncate(limit);
    let rows = firings.iter().map(|(schedule, tick)| {
        let paused = if schedule.is_paused() { "paused: it will be skipped" } else { "" };
        let why: Vec<_> = [paused.to_owned(), note(tick)].into_iter().filter(|text| !text.is_empty()).collect();
        let definition = schedule.definition;
        [definition.name.clone(), local(tick), definition.time_zone.clone(), utc(tick), why.join("; ")]
    });
    if known.is_empty() {
        no_schedules(world, out);
    } else {
        out.table(["SCHEDULE", "LOCAL TIME", "ZONE", "UTC", "WHY"], rows.collect());
    }
    let documents = firings.iter().map(|(schedule, tick)| {
        let mut document = tick_document(&schedule.definition.name, &schedule.definition.time_zone, tick);
        document["paused"] = json!(schedule.is_paused());
        document
    });
    out.document("schedules.next", json!({ "ticks": documents.collect::<Vec<_>>() }));
    Ok(Exit::Done)
}

fn preview(
    world: &World,
    out: Output,
    cron: &str,
    time_zone: &str,
    from: Option<&str>,
    limit: u32,
) -> Result<Exit, Ended> {
    let cron: CronExpression = cron
        .parse()
        .map_err(|fault: engine_rules::schedule::CronFault| Ended::from(fault.to_failure()).with_exit(Exit::Usage))?;
    let zone = find_time_zone(time_zone).map_err(|error| engine_error(&error))?;
    let name = zone.iana_name().unwrap_or(time_zone);
    let from = match from {
        Some(text) => instant_of(text, &zone)?,
        None => now(world),
    };
    let cursor = Cursor::before(from, &zone);
    let ticks: Vec<Tick> =
        Ticks::after(&cron, &zone, cursor).take(usize::try_from(limit).unwrap_or(usize::MAX)).collect();
    out.line(format!("{cron} in {name}: {}", show::follows(cron.kind())));
    out.table(
        ["LOCAL TIME", "ZONE", "UTC", "WHY"],
        ticks.iter().map(|tick| [local(tick), name.to_owned(), utc(tick), note(tick)]).collect(),
    );
    out.document(
        "schedules.preview",
        json!({
            "cron": cron.as_str(),
            "follows": cron.kind().as_str(),
            "time_zone": name,
            "from": show::instant(from.as_millisecond()),
            "ticks": ticks.iter().map(|tick| tick_document("", name, tick)).collect::<Vec<_>>(),
        }),
    );
    Ok(Exit::Done)
}

/// The instant that a person means by `text`: one that says its offset, or a local time of the zone that is one instant.
fn instant_of(text: &str, zone: &TimeZone) -> Result<Timestamp, Ended> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    let local: DateTime = text.parse().map_err(|_| {
        Ended::usage(format!(
            "{text:?} is no time; expected a local time such as 2026-03-07 or 2026-03-07T08:30, or an instant"
        ))
        .with_hint("an instant ends in Z or an offset, such as 2026-03-07T13:30:00Z")
    })?;
    when::one_instant(text, local, zone)
}

fn unknown(name: &str, known: impl Iterator<Item = String>) -> Ended {
    let known: Vec<String> = known.collect();
    let known = if known.is_empty() { "there are none".to_owned() } else { format!("there are {}", known.join(", ")) };
    Ended::usage(format!("there is no schedule {name:?}; {known}"))
        .with_hint("jobctl schedules list names them; [schedules.<name>] in jobctl.toml makes one")
}

/// The engine, with the schedule in it as the configuration has it, so that a person need not wait for a daemon.
async fn engine_with(world: &World, name: &str) -> Result<Engine, Ended> {
    let definition = world.config.schedules.iter().find(|definition| definition.name == name);
    if definition.is_none() {
        // Where neither knows it, nothing is created for it.
        let (known, left) = known(world).await?;
        if !left.iter().any(|row| row.name == name) {
            return Err(unknown(name, known.iter().map(|schedule| schedule.definition.name.clone())));
        }
    }
    let engine = world.engine().await?;
    if let Some(definition) = definition {
        engine.put_schedule(definition).await.map_err(|error| engine_error(&error))?;
    }
    Ok(engine)
}

async fn pause(world: &World, out: Output, name: &str, reason: String) -> Result<Exit, Ended> {
    let engine = engine_with(world, name).await?;
    let by = Mutation { actor: world.actor.clone(), reason };
    engine.pause_schedule(name, &by).await.map_err(|error| engine_error(&error))?;
    out.line(format!(
        "schedule {name} is paused: its ticks are skipped until jobctl schedules resume {name} --reason …"
    ));
    out.document(
        "schedules.pause",
        json!({ "schedule": name, "state": "paused", "by": by.actor, "reason": by.reason }),
    );
    Ok(Exit::Done)
}

async fn resume(world: &World, out: Output, name: &str, reason: String) -> Result<Exit, Ended> {
    let engine = engine_with(world, name).await?;
    let by = Mutation { actor: world.actor.clone(), reason };
    engine.resume_schedule(name, &by).await.map_err(|error| engine_error(&error))?;
    let (known, _) = known(world).await?;
    let now = now(world);
    let next = known.iter().find(|schedule| schedule.definition.name == name).and_then(|schedule| {
        let tick = schedule.upcoming(now).next()?;
        Some((local(&tick), tick_document(name, &schedule.definition.time_zone, &tick)))
    });
    let when = next.as_ref().map(|(when, _)| format!("; it fires next at {when}")).unwrap_or_default();
    out.line(format!("schedule {name} is on{when}"));
    out.document(
        "schedules.resume",
        json!({ "schedule": name, "state": "on", "by": by.actor, "reason": by.reason, "next": next.map(|next| next.1) }),
    );
    Ok(Exit::Done)
}

async fn trigger(world: &World, out: Output, name: &str, reason: String, detach: bool) -> Result<Exit, Ended> {
    let engine = engine_with(world, name).await?;
    let by = Mutation { actor: world.actor.clone(), reason };
    let started = match engine.trigger_schedule(name, &by, detach).await {
        Ok(started) => started,
        Err(error) => return Err(not_triggered(&engine, &error).await?),
    };
    let run_id = started.run_id;
    if started.queued {
        out.line(format!("run {run_id} of schedule {name} is in the queue: jobctl serve carries it out"));
        out.document(
            "schedules.trigger",
            json!({ "schedule": name, "run_id": run_id.to_string(), "state": "queued", "exit_code": 0 }),
        );
        return Ok(Exit::Done);
    }
    let ended = stay(world, &engine, out, run_id, &format!("schedule {name}")).await?;
    let mut document = ended.document(&[]);
    document["schedule"] = json!(name);
    out.document("schedules.trigger", document);
    Ok(ended.exit)
}

/// What a trigger ends with that did not start a run: where the run that has the key waits for a person, so does this.
async fn not_triggered(engine: &Engine, error: &EngineError) -> Result<Ended, Ended> {
    if let EngineError::ScheduleHeld { holder, .. } = error {
        let run = engine.reader().run(*holder).await.map_err(|error| engine_error(&error))?.run;
        if let Some(Ok(product_id)) = run.labels.get("product").map(|product| product.parse()) {
            let held = busy(engine, &product_id, *holder).await?;
            if held.exit == Exit::Blocked {
                return Ok(held);
            }
        }
    }
    Ok(engine_error(error))
}

async fn ticks(world: &World, out: Output, name: Option<String>, skipped: bool, limit: u32) -> Result<Exit, Ended> {
    if let Some(name) = &name {
        let (known, left) = known(world).await?;
        let mut names = known.iter().map(|schedule| &schedule.definition.name).chain(left.iter().map(|row| &row.name));
        if !names.any(|found| found == name) {
            let all = known
                .iter()
                .map(|schedule| schedule.definition.name.clone())
                .chain(left.iter().map(|row| row.name.clone()));
            return Err(unknown(name, all));
        }
    }
    let filter = TickFilter { schedule: name, only_skipped: skipped, limit: Some(limit) };
    let ticks = match reader(world).await? {
        Some(reader) => reader.ticks(&filter).await.map_err(|error| engine_error(&error))?,
        None => Vec::new(),
    };
    let rows = ticks.iter().map(|tick| {
        [
            tick.schedule.clone(),
            tick.local_time.clone(),
            tick.time_zone.clone(),
            show::utc_ms(tick.due_at_ms),
            tick.outcome.clone(),
            tick.run_id.map(|run_id| short(&run_id.to_string())).unwrap_or_default(),
            tick.reason.clone().unwrap_or_default(),
        ]
    });
    if ticks.is_empty() {
        out.line(if skipped { "no ticks that started no run" } else { "no ticks" });
    } else {
        out.table(["SCHEDULE", "LOCAL TIME", "ZONE", "DUE (UTC)", "OUTCOME", "RUN", "WHY"], rows.collect());
    }
    out.document("schedules.ticks", json!({ "ticks": ticks.iter().map(tick_row_document).collect::<Vec<_>>() }));
    Ok(Exit::Done)
}
