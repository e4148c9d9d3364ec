//! A new edition over the same data files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use catalog_rules::contracts::publish::SealInput;
use catalog_rules::inventory::By;
use catalog_rules::manifest::{EditionFile, Manifest, Producer, Provenance, Root, Tier};
use catalog_rules::sdmx::model::Artefact;
use engine_rules::activity::ActivityContext;
use engine_rules::clock::Clock;
use engine_rules::failure::{Disposition, Failure};
use serde_json::json;

use super::support::{SMALL, TickingClock, World, copy_tree, snapshot};
use crate::edition::testing::Synthetic;
use crate::edition::*;
use crate::fs::{Fs, RealFs};
use crate::inventory::{Init, init_catalog};
use crate::metadata_store::MetadataStore;
use crate::publish::{PublishDeps, producer};
use crate::store::{LocalStore, Store};

const WHERE: &str = "JOBCTL_TEST_CRASH_DIR";
const POINT: &str = "JOBCTL_TEST_CRASH_POINT";

/// Renames the dataflow and a code, in French, which neither has yet.
fn renamed(artefacts: Vec<Artefact>) -> Result<Vec<Artefact>, Failure> {
    let mut changed = Vec::new();
    for artefact in artefacts {
        match artefact {
            Artefact::Dataflow(mut flow) => {
                flow.common.name.insert("fr".to_owned(), "Nombres inventés".to_owned());
                changed.push(Artefact::Dataflow(flow));
            }
            Artefact::Codelist(mut list) if list.common.id.contains("GENDER") => {
                list.codes[0].name.insert("fr".to_owned(), "Femmes".to_owned());
                changed.push(Artefact::Codelist(list));
            }
            _ => {}
        }
    }
    Ok(changed)
}

type Change = fn(Vec<Artefact>) -> Result<Vec<Artefact>, Failure>;

fn fold_by(world: &World, change: Change) -> Result<Folded, EditionError> {
    let (product, product_id) = (world.product(), Synthetic::product_id());
    let (edition_id, previous) = (Synthetic::edition_id(2), Synthetic::edition_id(1));
    let order = FoldOrder {
        product_dir: &product,
        product_id: &product_id,
        edition_id: &edition_id,
        previous: &previous,
        change: &change,
    };
    fold(&world.tools(&RealFs), &order)
}

/// What stays when only artefacts are others.
fn data(manifest: &Manifest) -> Vec<(String, u64, String)> {
    let line = |file: &EditionFile| (file.path.clone(), file.size_bytes, file.digests.sha256.to_string());
    manifest.files_of(Root::Data).map(line).collect()
}

#[test]
fn a_fold_replaces_what_is_changed_and_reads_the_same_data_files() {
    let world = World::new();
    let (_, first) = world.publish(1, None, &SMALL);
    let before = snapshot(&world.edition(1));
    let data_before = snapshot(&world.product().join("data"));

    assert_eq!(fold_by(&world, renamed).unwrap(), Folded { replaced: 2 });
    let second = world.seal(2, Some(1)).manifest;
    assert_eq!(world.findings(2, Profile::Publish), [""; 0]);
    assert_eq!(second.previous, Some(Synthetic::edition_id(1)));

    // The rows: no file more, none read again, and every fingerprint of them is the same.
    assert_eq!(data(&second), data(&first.manifest));
    assert_eq!(snapshot(&world.product().join("data")), data_before);
    assert!(second.files_of(Root::Data).all(|file| file.carried_from == Some(Synthetic::edition_id(1))));
    let (old, new) = (&first.manifest.bindings[0], &second.bindings[0]);
    assert_eq!((&old.dataflow, old.observations, old.fingerprint), (&new.dataflow, new.observations, new.fingerprint));
    assert_eq!(old.structural_version, new.structural_version);
    assert_ne!(old.structure_fingerprint, new.structure_fingerprint);

    // The artefacts: two are others, and no other.
    let pairs: Vec<_> = first.manifest.artefacts.iter().zip(&second.artefacts).collect();
    assert!(pairs.iter().all(|(old, new)| old.urn == new.urn) && pairs.len() == second.artefacts.len());
    let others: Vec<&str> =
        pairs.iter().filter(|(old, new)| old.fingerprint != new.fingerprint).map(|(old, _)| old.urn.as_str()).collect();
    assert_eq!(others.len(), 2, "{others:?}");
    assert!(others.iter().any(|urn| urn.contains("GENDER")) && others.contains(&Synthetic::dataflow().as_str()));
    assert_ne!(first.manifest.content_fingerprint, second.content_fingerprint);

    // The stores: bindings and availability are those that were.
    let stored = |n: u64| {
        let reader = EditionReader::open(&world.duck, &world.edition(n)).unwrap();
        let store = MetadataStore::new(reader.session().connection(), crate::duck::STORE);
        (store.read_bindings().unwrap(), store.read_availability().unwrap(), store.read_artefacts().unwrap())
    };
    let ((bindings, availability, old), (folded_bindings, folded_availability, new)) = (stored(1), stored(2));
    assert_eq!((bindings, availability), (folded_bindings, folded_availability));
    let mut by_hand = old.clone();
    for changed in renamed(old).unwrap() {
        let place = by_hand.iter_mut().find(|artefact| artefact.urn() == changed.urn()).unwrap();
        *place = changed;
    }
    assert_eq!(new, by_hand);
    assert_eq!(snapshot(&world.edition(1)), before, "the folded edition changed");
    assert_eq!(world.findings(1, Profile::Publish), [""; 0]);
}

#[test]
fn a_fold_carries_files_beside_the_databases_and_can_be_published_upon() {
    let world = World::new();
    world.build(1, None, &SMALL);
    std::fs::create_dir(world.edition(1).join("notes")).unwrap();
    std::fs::write(world.edition(1).join("notes/read.me"), b"words").unwrap();
    let first = world.seal(1, None).manifest;
    fold_by(&world, renamed).unwrap();
    let second = world.seal(2, Some(1)).manifest;
    assert_eq!(std::fs::read(world.edition(2).join("notes/read.me")).unwrap(), b"words");
    // The next publish finds its rows unchanged, and its structures as the source has them.
    let (built, third) = world.publish(3, Some(2), &SMALL);
    assert_eq!((built.new_files, built.tables[0].new_rows), (0, 0));
    assert_eq!(data(&third.manifest), data(&second));
    assert_eq!(third.manifest.content_fingerprint, first.content_fingerprint);
}

#[test]
fn a_change_that_is_refused_leaves_the_product_byte_for_byte_as_it_was() {
    let world = World::new();
    world.publish(1, None, &SMALL);
    let before = snapshot(&world.product());
    let refused = fold_by(&world, |_| {
        Err(Failure {
            code: "catalog.no".to_owned(),
            message: "no".to_owned(),
            disposition: Disposition::Terminal,
            hint: None,
        })
    });
    assert!(matches!(refused, Err(EditionError::Source(failure)) if failure.code == "catalog.no"));
    assert_eq!(snapshot(&world.product()), before);
    // An edition that lost a file is refused before it is read.
    let data = world.product().join("data");
    let lost = before.keys().find(|path| path.ends_with(".parquet")).unwrap();
    std::fs::rename(world.product().join(lost), data.join("elsewhere")).unwrap();
    assert!(matches!(fold_by(&world, renamed), Err(EditionError::PreviousDamaged { .. })));
    std::fs::rename(data.join("elsewhere"), world.product().join(lost)).unwrap();
    // So is a product with another edition under construction, and an edition that is sealed.
    world.build(3, Some(1), &SMALL);
    assert!(matches!(fold_by(&world, renamed), Err(EditionError::OtherUnsealed { .. })));
    discard(&RealFs, &world.product(), &Synthetic::edition_id(3)).unwrap();
    fold_by(&world, renamed).unwrap();
    world.seal(2, Some(1));
    assert!(matches!(fold_by(&world, renamed), Err(EditionError::AlreadySealed { .. })));
}

#[test]
fn a_fold_keeps_what_the_folded_edition_says_of_its_making() {
    let world = World::new();
    let catalog = world.product().parent().and_then(Path::parent).unwrap().to_owned();
    std::fs::create_dir_all(&catalog).unwrap();
    let (fs, clock): (Arc<dyn Fs>, Arc<dyn Clock>) = (Arc::new(RealFs), Arc::new(TickingClock::default()));
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(catalog.clone(), Arc::clone(&fs), Arc::clone(&clock)));
    let init = Init {
        catalog_id: "019a0000-0000-7000-8000-000000000000".parse().unwrap(),
        embargo: false,
        title: BTreeMap::new(),
        beside: Vec::new(),
    };
    let by = By { actor: "a".to_owned(), reason: "r".to_owned(), producer: producer(), own_work: None };
    init_catalog(store.as_ref(), &init, &by).unwrap();

    world.build(1, None, &SMALL);
    std::fs::write(world.edition(1).join("notes"), b"words").unwrap();
    let (product, product_id, first) = (world.product(), Synthetic::product_id(), Synthetic::edition_id(1));
    let section = |text: &str| json!({ "of": text }).as_object().unwrap().clone();
    let order = SealOrder {
        product_dir: &product,
        product_id: &product_id,
        edition_id: &first,
        previous: None,
        producer: Some(Producer { name: "statcatlib".to_owned(), version: "0.12.0".to_owned() }),
        is_final: false,
        tiers: &[TierRule { prefix: "tables.ducklake".to_owned(), tier: Tier::Lazy }],
        producer_fields: section("the producer"),
        extensions: [("statcat".to_owned(), section("a package"))].into(),
        provenance: Some(Provenance {
            source: "ECB".to_owned(),
            endpoint: "https://example.org/rest".to_owned(),
            api: "2.1".to_owned(),
            retrieved_at: catalog_rules::instant::Instant::from_ms(1_790_000_000_000),
            dataflow: Synthetic::dataflow(),
            key: None,
            start: None,
            end: None,
            structures_only: false,
            artefacts: Vec::new(),
        }),
    };
    let old = seal(&world.tools(&RealFs), &order).unwrap().manifest;

    fold_by(&world, renamed).unwrap();
    let deps = PublishDeps::new(catalog, store, fs, clock, world.duck.clone());
    let input = SealInput {
        product_id,
        edition_id: Synthetic::edition_id(2),
        previous: Some(first),
        lifecycle: None,
        is_fold: true,
    };
    let sealed = crate::publish::seal(&deps, &ActivityContext::detached(), input).unwrap();
    // Only what is not in data/ was read: the two databases and the notes.
    assert_eq!((sealed.hashed, sealed.carried), (3, 1));
    let new = Manifest::decode(&std::fs::read(world.edition(2).join("manifest.json")).unwrap()).unwrap();
    assert_eq!((&new.producer, &new.producer_fields), (&old.producer, &old.producer_fields));
    assert_eq!((&new.provenance, &new.extensions["statcat"]), (&old.provenance, &old.extensions["statcat"]));
    let tiers = |manifest: &Manifest| -> Vec<(String, Tier)> {
        manifest.files_of(Root::Edition).map(|file| (file.path.clone(), file.tier)).collect()
    };
    assert_eq!(tiers(&new), tiers(&old));
    assert!(tiers(&new).contains(&("tables.ducklake".to_owned(), Tier::Lazy)));
    // The section of this program is that of the new edition.
    assert_eq!(new.jobctl().unwrap().fingerprints, old.jobctl().unwrap().fingerprints);
    assert_eq!(world.findings(2, Profile::Publish), [""; 0]);
}

#[test]
fn child_that_folds_up_to_a_point() {
    let (Some(dir), Ok(_)) = (std::env::var_os(WHERE), std::env::var(POINT)) else { return };
    engine_rules::crash::install(|name| {
        if std::env::var(POINT).is_ok_and(|point| point == name) {
            std::process::abort();
        }
    });
    fold_by(&World::at(dir.into()), renamed).unwrap();
}

#[test]
fn a_fold_that_ended_anywhere_is_begun_again_and_ends_as_if_undisturbed() {
    let origin = World::new();
    origin.publish(1, None, &SMALL);
    clear_journal(&RealFs, &origin.product(), &Synthetic::edition_id(1)).unwrap();
    let undisturbed = World::new();
    copy_tree(&origin.product(), &undisturbed.product());
    fold_by(&undisturbed, renamed).unwrap();
    let expected = undisturbed.seal(2, Some(1)).manifest;
    for point in CRASH_POINTS.iter().filter(|point| point.starts_with("edition.build.")) {
        let world = World::new();
        copy_tree(&origin.product(), &world.product());
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "edition::tests::fold::child_that_folds_up_to_a_point", "--nocapture"])
            .env(WHERE, world.dir.path())
            .env(POINT, point)
            .output()
            .unwrap();
        assert_eq!(child.status.code(), None, "{point} was not reached: {}", String::from_utf8_lossy(&child.stderr));
        fold_by(&world, renamed).unwrap();
        let sealed = world.seal(2, Some(1)).manifest;
        assert_eq!(sealed.content_fingerprint, expected.content_fingerprint, "{point}");
        assert_eq!((&sealed.bindings, &sealed.artefacts), (&expected.bindings, &expected.artefacts), "{point}");
        assert_eq!(data(&sealed), data(&expected), "{point}");
        assert_eq!(world.findings(2, Profile::Publish), [""; 0], "{point}");
        assert_eq!(unsealed(&world.product()).unwrap(), [], "{point}");
    }
}
