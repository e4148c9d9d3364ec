//! `jobctl overlay …`: overlays as files, before anything applies them.

use std::path::{Path, PathBuf};

use activities::inventory::{FullInventory, fetch_from, open_catalog};
use activities::metadata_store::SCHEMA_VERSION;
use activities::publish::read_overlay;
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::SchemaVersion;
use catalog_rules::overlay::{self, Audience, Checked, Hooks, OverlayFinding, effective_token};
use engine_rules::failure::{ActivityError as _, Disposition, Failure};
use serde_json::{Value, json};

use super::edition::find;
use crate::args::{EditionRef, Overlay, OverlayToken};
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::World;

/// Carries out `jobctl overlay …`. Only `token` looks at a catalog, which `world` gives.
///
/// # Errors
/// A file that cannot be read; for `digest` and `token`, one that is no valid overlay.
pub fn overlay(world: impl FnOnce() -> Result<World, Ended>, out: Output, args: Overlay) -> Result<Exit, Ended> {
    match args {
        Overlay::Check { files } => check(out, &files),
        Overlay::Digest { files, audience } => digest(out, &files, audience),
        Overlay::Token(args) => token(&world()?, out, &args),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Ended> {
    read_overlay(path).map_err(|error| Ended::usage(error.to_string()))
}

/// The valid overlays in `files`.
fn read(files: &[PathBuf]) -> Result<Vec<overlay::Overlay>, Ended> {
    files.iter().map(|path| decode(path)).collect()
}

fn decode(path: &Path) -> Result<overlay::Overlay, Ended> {
    overlay::Overlay::decode(&bytes(path)?).map_err(|error| {
        Ended::from(Failure {
            code: "catalog.overlay_invalid".to_owned(),
            message: format!("{}: {error}", path.display()),
            disposition: Disposition::Terminal,
            hint: Some(format!("jobctl overlay check {} tells the same as a table", path.display())),
        })
    })
}

fn check(out: Output, files: &[PathBuf]) -> Result<Exit, Ended> {
    let (mut documents, mut rows) = (Vec::new(), Vec::new());
    for path in files {
        let Checked { overlay, findings } = overlay::check(&bytes(path)?);
        let file = path.display().to_string();
        if findings.is_empty()
            && let Some(overlay) = &overlay
        {
            let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
            out.line(format!(
                "{file}: overlay {:?}, {}, {}: no finding",
                overlay.id,
                count(overlay.entries.len(), "entry", "entries"),
                count(overlay.texts.len(), "text", "texts"),
            ));
        }
        rows.extend(findings.iter().map(|finding| row(&file, finding)));
        documents.push(json!({
            "file": file,
            "id": overlay.as_ref().map(|overlay| &overlay.id),
            "format_version": overlay.as_ref().map(|overlay| overlay.format_version),
            "entries": overlay.as_ref().map(|overlay| overlay.entries.len()),
            "texts": overlay.as_ref().map(|overlay| overlay.texts.len()),
            "audiences": overlay.as_ref().map(|overlay| {
                overlay.audiences().into_iter().map(Audience::as_str).collect::<Vec<_>>()
            }),
            "digest": overlay.as_ref().map(|overlay| overlay.digest(None)),
            "valid": overlay.is_some(),
            "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        }));
    }
    let is_clean = rows.is_empty();
    if !is_clean {
        out.table(["FILE", "PLACE", "CODE", "FOUND", "EXPECTED"], rows);
    }
    out.document("overlay.check", json!({ "overlays": documents }));
    Ok(if is_clean { Exit::Done } else { Exit::Findings })
}

fn row(file: &str, finding: &OverlayFinding) -> [String; 5] {
    let place = if finding.place.is_empty() { "the document" } else { &finding.place };
    let fault = &finding.fault;
    [file.to_owned(), place.to_owned(), fault.code().to_owned(), fault.found(), fault.expected()]
}

fn finding(finding: &OverlayFinding) -> Value {
    json!({
        "place": finding.place,
        "code": finding.fault.code(),
        "rule": finding.fault.rule(),
        "found": finding.fault.found(),
        "expected": finding.fault.expected(),
        "refused": finding.fault.is_refused(),
        "message": finding.to_string(),
    })
}

fn digest(out: Output, files: &[PathBuf], audience: Option<String>) -> Result<Exit, Ended> {
    let audience = audience.map(Audience::new);
    let overlays = read(files)?;
    for (path, overlay) in files.iter().zip(&overlays) {
        out.line(format!("{}  {}", overlay.digest(audience.as_ref()), path.display()));
    }
    out.document(
        "overlay.digest",
        json!({
            "audience": audience.as_ref().map(Audience::as_str),
            "overlays": digests(files, &overlays, audience.as_ref()),
        }),
    );
    Ok(Exit::Done)
}

fn digests(files: &[PathBuf], overlays: &[overlay::Overlay], audience: Option<&Audience>) -> Vec<Value> {
    let digest = |(path, overlay): (&PathBuf, &overlay::Overlay)| json!({ "file": path.display().to_string(), "id": overlay.id, "digest": overlay.digest(audience) });
    files.iter().zip(overlays).map(digest).collect()
}

fn token(world: &World, out: Output, args: &OverlayToken) -> Result<Exit, Ended> {
    let product_id: ProductId = args.product.parse()?;
    let hooks = hooks(&args.hooks)?;
    let overlays = read(&args.files)?;
    let edition_id = edition(world, &product_id, args.edition.as_deref())?;
    let audience = args.audience.clone().map(Audience::new);
    let token = effective_token(&edition_id, &overlays, audience.as_ref(), &hooks).map_err(|refused| {
        Ended::from(Failure {
            code: "catalog.overlay_texts".to_owned(),
            message: refused.to_string(),
            disposition: Disposition::Terminal,
            hint: Some(refused.fix()),
        })
    })?;
    out.line(token.as_str());
    out.document(
        "overlay.token",
        json!({
            "product_id": product_id,
            "edition_id": edition_id,
            "audience": args.audience,
            "hooks": hooks.to_string(),
            "overlays": digests(&args.files, &overlays, audience.as_ref()),
            "token": token.as_str(),
        }),
    );
    Ok(Exit::Done)
}

/// The hooks of all types together.
fn hooks(given: &[Hooks]) -> Result<Hooks, Ended> {
    let mut hooks = Hooks::none();
    for hook in given {
        for (annotation_type, id) in hook.iter() {
            if let Some((_, other)) = hooks.iter().find(|(held, _)| *held == annotation_type) {
                return Err(Ended::usage(format!(
                    "the annotation type {annotation_type:?} was given two hooks, {other} and {id}; expected one a type"
                )));
            }
        }
        hooks = hooks.and(hook.clone());
    }
    Ok(hooks)
}

/// The sealed edition that is named, or the one that is live at this program's store schema.
fn edition(world: &World, product_id: &ProductId, named: Option<&str>) -> Result<EditionId, Ended> {
    if let Some(named) = named {
        let named = EditionRef { edition: named.to_owned(), product: Some(product_id.to_string()) };
        let manifest = find(world, &named)?.manifest()?;
        if manifest.product_id != *product_id {
            return Err(Ended::usage(format!(
                "edition {} is of product {}; expected one of product {product_id}",
                manifest.edition_id, manifest.product_id
            )));
        }
        return Ok(manifest.edition_id);
    }
    open_catalog(world.store.as_ref()).map_err(|error| Ended::from(error.to_failure()))?;
    let leaf = FullInventory::open(fetch_from(world.store.clone()))
        .and_then(|inventory| inventory.leaf(product_id))
        .map_err(|error| Ended::from(error.to_failure()))?;
    let live = leaf.as_deref().and_then(|leaf| leaf.head(&SchemaVersion::new(SCHEMA_VERSION)));
    live.map(|entry| entry.edition_id.clone()).ok_or_else(|| {
        Ended::usage(format!("no edition of product {product_id} is live at store schema {SCHEMA_VERSION}"))
            .with_hint("name one with --edition; jobctl edition list names them")
    })
}
