//! `jobctl edition …`: the editions on this disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use activities::edition::{self, CheckOptions, EditionError, EditionState, ListedEdition, Profile, Tools};
use activities::inventory::{FullInventory, fetch_from, open_catalog};
use catalog_rules::contracts::edition::DiscardInput;
use catalog_rules::contracts::publish::Cause;
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::Mark;
use catalog_rules::layout;
use catalog_rules::manifest::{MANIFEST_NAME, Manifest, Tier as ManifestTier};
use engine::{KeyPolicy, Start, StartRun};
use engine_rules::activity::ActivityContext;
use engine_rules::failure::ActivityError as _;
use serde_json::{Value, json};

use crate::args::{At, Edition, EditionRef, Tier};
use crate::exit::{Ended, Exit};
use crate::output::{Output, grouped, moment, short, size};
use crate::wire::{World, engine_error};

use super::publish::{busy, stay};
use crate::start::{publish_key as key, to_value};

fn ended(error: EditionError) -> Ended {
    Ended::from(error.to_failure())
}

/// Carries out `jobctl edition …`.
///
/// # Errors
/// An unknown edition, or what the disk fails with.
pub async fn edition(world: &World, out: Output, args: Edition) -> Result<Exit, Ended> {
    match args {
        Edition::List { product } => list(world, out, product.as_deref()),
        Edition::Show(edition) => show(world, out, &edition),
        Edition::Check { edition, at, no_fingerprints, expect } => {
            check(world, out, &edition, at, no_fingerprints, expect.as_deref())
        }
        Edition::Files { edition, tiers, manifest } => files(world, out, &edition, &tiers, manifest),
        Edition::Copy { edition, destination, tiers } => copy(world, out, &edition, &destination, &tiers),
        Edition::Discard { edition, reason } => discard(world, out, &edition, &reason).await,
    }
}

/// An edition that a person named.
pub(super) struct Found {
    product: PathBuf,
    edition_id: EditionId,
}

impl Found {
    fn folder(&self) -> PathBuf {
        self.product.join(self.edition_id.as_str())
    }

    /// Its manifest; an edition that is not sealed is refused.
    pub(super) fn manifest(&self) -> Result<Manifest, Ended> {
        let path = self.folder().join(MANIFEST_NAME);
        let bytes = std::fs::read(&path).map_err(|error| {
            Ended::usage(format!("edition {} is not sealed: {}: {error}", self.edition_id, path.display()))
                .with_exit(Exit::Refused)
        })?;
        Manifest::decode(&bytes)
            .map_err(|error| Ended::usage(format!("{}: {error}", path.display())).with_exit(Exit::Refused))
    }
}

/// The products of the catalog that have a folder, with their editions; or one product's.
fn editions(world: &World, product: Option<&str>) -> Result<BTreeMap<ProductId, Vec<ListedEdition>>, Ended> {
    let mut found = BTreeMap::new();
    let mut add = |product_id: ProductId| -> Result<(), Ended> {
        let folder = world.config.catalog.join(layout::product(&product_id));
        let editions = edition::list(&folder).map_err(ended)?;
        found.insert(product_id, editions);
        Ok(())
    };
    match product {
        Some(product) => add(product.parse()?)?,
        None => {
            let folders = world.store.list(layout::PRODUCTS).map_err(|error| Ended::from(error.to_failure()))?.folders;
            for product in folders.iter().filter_map(|name| name.parse().ok()) {
                add(product)?;
            }
        }
    }
    Ok(found)
}

/// The edition that `named` names: a folder, or an id, a beginning or an end of one, or both with `…` between.
pub(super) fn find(world: &World, named: &EditionRef) -> Result<Found, Ended> {
    let path = Path::new(&named.edition);
    if path.components().count() > 1 {
        let path = std::path::absolute(path).map_err(|error| Ended::usage(format!("{}: {error}", path.display())))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let edition_id = name.parse()?;
        return Ok(Found { product: path.parent().map(Path::to_owned).unwrap_or_default(), edition_id });
    }
    open_catalog(world.store.as_ref()).map_err(|error| Ended::from(error.to_failure()))?;
    let text = named.edition.as_str();
    let (beginning, end) = text.split_once('…').or_else(|| text.split_once("...")).unwrap_or((text, ""));
    let fits = |id: &str| {
        if end.is_empty() {
            id.starts_with(beginning) || id.ends_with(beginning)
        } else {
            id.starts_with(beginning) && id.ends_with(end)
        }
    };
    let mut found: Vec<Found> = Vec::new();
    for (product_id, editions) in editions(world, named.product.as_deref())? {
        for edition in editions.iter().filter(|edition| fits(edition.edition_id.as_str())) {
            let product = world.config.catalog.join(layout::product(&product_id));
            found.push(Found { product, edition_id: edition.edition_id.clone() });
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Ended::usage(format!("there is no edition {text}")).with_hint("jobctl edition list names them")),
        _ => {
            let names: Vec<_> = found.iter().map(|found| found.edition_id.to_string()).collect();
            Err(Ended::usage(format!("{text} names several editions: {}", names.join(", "))))
        }
    }
}

/// The marks of the products' editions in the newest version; none where there is no Inventory to read.
fn marks(world: &World, product_id: &ProductId) -> BTreeMap<EditionId, Mark> {
    FullInventory::open(fetch_from(world.store.clone()))
        .and_then(|inventory| inventory.marks(product_id))
        .unwrap_or_default()
}

fn list(world: &World, out: Output, product: Option<&str>) -> Result<Exit, Ended> {
    open_catalog(world.store.as_ref()).map_err(|error| Ended::from(error.to_failure()))?;
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for (product_id, editions) in editions(world, product)? {
        let marks = marks(world, &product_id);
        for edition in editions {
            let started = i64::try_from(edition.started_at_ms()).unwrap_or_default();
            let started = catalog_rules::instant::Instant::from_ms(started);
            let mark = marks.get(&edition.edition_id);
            let (sealed, manifest, problem) = match &edition.state {
                EditionState::Sealed(manifest) => (true, Some(manifest), None),
                EditionState::Unsealed => (false, None, None),
                EditionState::Unreadable(error) => (true, None, Some(error.to_string())),
            };
            let state = match (mark, sealed, &problem) {
                (_, _, Some(_)) => "unreadable".to_owned(),
                (Some(mark), _, None) => mark.to_string(),
                (None, true, None) => "sealed, not recorded".to_owned(),
                (None, false, None) => "unsealed".to_owned(),
            };
            let observations: Option<u64> =
                manifest.map(|manifest| manifest.bindings.iter().map(|binding| binding.observations).sum());
            let previous = manifest.and_then(|manifest| manifest.previous.clone());
            rows.push([
                product_id.to_string(),
                edition.edition_id.to_string(),
                state.clone(),
                previous.as_ref().map(|previous| short(previous.as_str())).unwrap_or_default(),
                observations.map(grouped).unwrap_or_default(),
                moment(started.as_ms()),
            ]);
            documents.push(json!({
                "product_id": product_id,
                "edition_id": edition.edition_id,
                "sealed": sealed,
                "state": mark,
                "previous": previous,
                "observations": observations,
                "started_at": started,
                "created_at": manifest.map(|manifest| &manifest.created_at),
                "problem": problem,
            }));
        }
    }
    if rows.is_empty() {
        out.line("no editions");
    } else {
        out.table(["PRODUCT", "EDITION", "STATE", "PREVIOUS", "ROWS", "STARTED"], rows);
    }
    out.document("edition.list", json!({ "editions": documents }));
    Ok(Exit::Done)
}

fn show(world: &World, out: Output, named: &EditionRef) -> Result<Exit, Ended> {
    let found = find(world, named)?;
    let manifest = found.manifest()?;
    let total: u64 = manifest.files.iter().map(|file| file.size_bytes).sum();
    let carried = manifest.files.iter().filter(|file| file.carried_from.is_some()).count();
    out.line(format!("edition {} of product {}", manifest.edition_id, manifest.product_id));
    let previous = manifest.previous.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    out.line(format!("  previous       {previous}"));
    out.line(format!(
        "  sealed         {} by {} {}",
        manifest.created_at, manifest.producer.name, manifest.producer.version
    ));
    out.line(format!("  schema         {}", manifest.schema_version));
    out.line(format!(
        "  engine         DuckDB {}, storage {}, DuckLake {} ({})",
        manifest.duckdb_version,
        manifest.duckdb_storage_version,
        manifest.ducklake_spec_version.as_deref().unwrap_or("none"),
        manifest.ducklake_version.as_deref().unwrap_or("none"),
    ));
    if let Some(fingerprint) = &manifest.content_fingerprint {
        out.line(format!("  content        {fingerprint}"));
    }
    for binding in &manifest.bindings {
        out.line(format!("  dataflow       {}", binding.dataflow));
        out.line(format!(
            "                 {} rows, fingerprint {}",
            grouped(binding.observations),
            binding.fingerprint
        ));
    }
    out.line(format!("  artefacts      {}", manifest.artefacts.len()));
    out.line(format!("  files          {}, {}, {carried} carried", manifest.files.len(), size(total)));
    let text = manifest.encode();
    let document: Value = serde_json::from_slice(&text).unwrap_or_default();
    out.document("edition.show", json!({ "manifest": document, "folder": found.folder() }));
    Ok(Exit::Done)
}

fn check(
    world: &World,
    out: Output,
    named: &EditionRef,
    at: At,
    no_fingerprints: bool,
    expect: Option<&str>,
) -> Result<Exit, Ended> {
    let found = find(world, named)?;
    let expected = match expect {
        Some(other) => {
            let other = EditionRef { edition: other.to_owned(), product: named.product.clone() };
            Some(find(world, &other)?.manifest()?)
        }
        None => None,
    };
    let profile = match at {
        At::Publish => Profile::Publish,
        At::Receive => Profile::Receive,
        At::Open => Profile::Open,
    };
    let mut options = CheckOptions { expect: expected.as_ref(), ..CheckOptions::at(profile) };
    options.fingerprints &= !no_fingerprints;
    let context = ActivityContext::detached();
    let report = edition::check(&tools(world, &context), &found.folder(), &options).map_err(ended)?;
    let rows = report
        .findings
        .iter()
        .map(|finding| [finding.check.as_str().to_owned(), finding.subject.clone(), finding.detail.to_string()]);
    let checks: Vec<_> = report.checked.iter().map(|check| check.as_str()).collect();
    if report.is_clean() {
        out.line(format!("edition {} at {}: {}: no finding", found.edition_id, profile.as_str(), checks.join(", ")));
    } else {
        out.table(["CHECK", "SUBJECT", "FINDING"], rows.collect());
    }
    let findings = report.findings.iter().map(|finding| {
        json!({
            "check": finding.check.as_str(),
            "subject": finding.subject,
            "detail": finding.detail.to_string(),
        })
    });
    out.document(
        "edition.check",
        json!({
            "edition_id": found.edition_id,
            "at": profile.as_str(),
            "checks": checks,
            "findings": findings.collect::<Vec<_>>(),
        }),
    );
    Ok(if report.is_clean() { Exit::Done } else { Exit::Findings })
}

fn tools<'a>(world: &'a World, context: &'a ActivityContext) -> Tools<'a> {
    Tools { fs: world.fs.as_ref(), clock: world.clock.as_ref(), duck: &world.duck, context }
}

fn tier_list(tiers: &[Tier]) -> Vec<ManifestTier> {
    if tiers.is_empty() {
        return vec![ManifestTier::Required, ManifestTier::Lazy, ManifestTier::Remote];
    }
    let tier = |tier: &Tier| match tier {
        Tier::Required => ManifestTier::Required,
        Tier::Lazy => ManifestTier::Lazy,
        Tier::Remote => ManifestTier::Remote,
    };
    tiers.iter().map(tier).collect()
}

fn files(world: &World, out: Output, named: &EditionRef, tiers: &[Tier], manifest: bool) -> Result<Exit, Ended> {
    let found = find(world, named)?;
    let files = if manifest {
        vec![format!("{}/{MANIFEST_NAME}", found.edition_id)]
    } else {
        edition::files(&found.manifest()?, &tier_list(tiers))
    };
    for file in &files {
        out.line(file);
    }
    out.document("edition.files", json!({ "edition_id": found.edition_id, "files": files }));
    Ok(Exit::Done)
}

fn copy(world: &World, out: Output, named: &EditionRef, to: &Path, tiers: &[Tier]) -> Result<Exit, Ended> {
    let found = find(world, named)?;
    let to = std::path::absolute(to).map_err(|error| Ended::usage(format!("{}: {error}", to.display())))?;
    let context = ActivityContext::detached();
    let copied = edition::copy(&tools(world, &context), &found.folder(), &to, &tier_list(tiers)).map_err(ended)?;
    out.line(format!(
        "edition {} in {}: {} files copied, {}, {} already there",
        found.edition_id,
        to.display(),
        copied.copied_files,
        size(copied.copied_bytes),
        copied.kept_files
    ));
    out.document(
        "edition.copy",
        json!({
            "edition_id": found.edition_id,
            "destination": to,
            "copied_files": copied.copied_files,
            "copied_bytes": copied.copied_bytes,
            "kept_files": copied.kept_files,
        }),
    );
    Ok(Exit::Done)
}

async fn discard(world: &World, out: Output, named: &EditionRef, reason: &str) -> Result<Exit, Ended> {
    let found = find(world, named)?;
    let name = found.product.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let product_id: ProductId = name.parse()?;
    if found.product != world.config.catalog.join(layout::product(&product_id)) {
        return Err(Ended::usage(format!("{} is not in the catalog", found.folder().display()))
            .with_hint("an unsealed edition elsewhere is a copy that was interrupted: delete its folder"));
    }
    let input = DiscardInput {
        product_id: product_id.clone(),
        edition_id: found.edition_id.clone(),
        cause: Cause { actor: world.actor.clone(), reason: reason.to_owned() },
    };
    let engine = world.engine().await?;
    let run = StartRun {
        reason: Some(reason.to_owned()),
        ..StartRun::new(workflows::discard::NAME, to_value(&input)?, world.actor.clone())
    };
    let run = run.key(key(&product_id), KeyPolicy::Forbid).label("product", product_id.as_str());
    let run_id = match engine.start(run).await.map_err(|error| engine_error(&error))? {
        Start::Started(started) => started.run_id,
        Start::Busy { holder } => return Err(busy(&engine, &product_id, holder).await?),
    };
    let ended = stay(world, &engine, out, run_id, &format!("discard {}", found.edition_id)).await?;
    out.document("edition.discard", ended.document(&[]));
    Ok(ended.exit)
}
