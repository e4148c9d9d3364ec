//! `jobctl init`: a new catalog and a commented configuration.

use std::collections::BTreeMap;
use std::path::Path;

use activities::fs::{Create, create_exclusive};
use activities::inventory::{Init as NewCatalog, init_catalog};
use catalog_rules::ids::CatalogId;
use catalog_rules::inventory::{By, Producer};
use engine_rules::failure::ActivityError as _;
use serde_json::json;

use crate::args::{Init, OnOff};
use crate::config::{FILE_NAME, template};
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::World;

/// Creates the catalog, and `jobctl.toml` in the working folder unless a configuration is there.
///
/// # Errors
/// What the catalog refuses, or the disk.
pub fn init(world: &World, out: Output, args: &Init) -> Result<Exit, Ended> {
    let catalog_id = CatalogId::from_uuid(world.clock.new_id())?;
    let title: BTreeMap<_, _> = args.title.iter().map(|title| ("en".to_owned(), title.clone())).collect();
    let new = NewCatalog { catalog_id, embargo: args.embargo == OnOff::On, title, beside: vec![FILE_NAME.to_owned()] };
    let by = By {
        actor: world.actor.clone(),
        reason: args.reason.clone().unwrap_or_else(|| "jobctl init".to_owned()),
        producer: Producer { name: "jobctl".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        own_work: None,
    };
    let created = init_catalog(world.store.as_ref(), &new, &by).map_err(|error| Ended::from(error.to_failure()))?;

    let mut configuration = None;
    if world.config.file.is_none() {
        let path = std::env::current_dir().unwrap_or_default().join(FILE_NAME);
        let folder = path.parent().unwrap_or(Path::new("."));
        let url = world.config.catalog.strip_prefix(folder).unwrap_or(&world.config.catalog).display().to_string();
        match create_exclusive(world.fs.as_ref(), &path, template(&url).as_bytes()) {
            Ok(Create::Won) => configuration = Some(path),
            Ok(Create::Exists) => {}
            Err(error) => {
                let message = format!("the catalog is there, but {} cannot be written: {error}", path.display());
                return Err(Ended::usage(message).with_exit(Exit::Failed));
            }
        }
    }
    out.line(format!(
        "catalog {} in {}, version 1, embargo {}",
        created.catalog_id,
        world.config.catalog.display(),
        if new.embargo { "on" } else { "off" }
    ));
    if let Some(path) = &configuration {
        out.line(format!("wrote {}", path.display()));
    }
    out.document(
        "init",
        json!({
            "catalog_id": created.catalog_id,
            "catalog": world.config.catalog,
            "embargo": new.embargo,
            "root_sha256": created.root_sha256,
            "configuration": configuration,
        }),
    );
    Ok(Exit::Done)
}
