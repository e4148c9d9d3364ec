//! Every document comes back from its bytes as it was, whatever it holds.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;
use serde_json::{Value, json};

use super::properties::runner;
use super::*;
use crate::seal_journal::JournalEntry;

fn sha() -> impl Strategy<Value = Sha256Hex> + Clone {
    any::<u64>().prop_map(|n| Sha256Hex::of(&n.to_le_bytes()))
}

fn an_edition() -> impl Strategy<Value = EditionId> + Clone {
    (0..1_u64 << 48).prop_map(edition)
}

fn a_product() -> impl Strategy<Value = ProductId> + Clone {
    "[A-Za-z0-9][A-Za-z0-9._-]{0,20}".prop_map(|text| text.parse().unwrap())
}

fn instant() -> impl Strategy<Value = Instant> + Clone {
    any::<i64>().prop_map(Instant::from_us)
}

fn a_seq() -> impl Strategy<Value = Seq> + Clone {
    (1..=u64::MAX).prop_map(|n| Seq::new(n).unwrap())
}

fn text() -> impl Strategy<Value = String> + Clone {
    any::<String>()
}

/// Fields that no document of today has.
fn other() -> BoxedStrategy<Map<String, Value>> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(|n| json!(n)),
        text().prop_map(|text| json!({"nested": [text]})),
    ];
    btree_map("x_[a-z]{1,4}", value, 0..3).prop_map(|map| map.into_iter().collect()).boxed()
}

fn version(major: u32) -> impl Strategy<Value = FormatVersion> + Clone {
    any::<u32>().prop_map(move |minor| FormatVersion { major, minor })
}

fn schema_version() -> impl Strategy<Value = SchemaVersion> + Clone {
    text().prop_map(SchemaVersion::new)
}

fn state() -> impl Strategy<Value = EntryState> + Clone {
    use EntryState::{Embargoed, Live, Superseded, Withdrawn};
    prop_oneof![Just(Embargoed), Just(Live), Just(Superseded), Just(Withdrawn)]
}

fn catalog() -> impl Strategy<Value = CatalogJson> {
    (any::<u32>(), any::<u64>(), option::of(a_seq()), other()).prop_map(|(minor, restore_epoch, since, other)| {
        CatalogJson {
            format_version: FormatVersion { major: if since.is_some() { 2 } else { 1 }, minor },
            restore_epoch,
            history: since.map(|since_seq| CatalogHistory { since_seq }),
            other,
            ..CatalogJson::new("01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap())
        }
    })
}

fn history() -> impl Strategy<Value = History> {
    (version(1), any::<(u64, u64)>(), option::of((text(), sha())), option::of(text()), other()).prop_map(
        |(format_version, (restore_epoch, expired_through), newest, cleaned_through, other)| History {
            format_version,
            catalog_id: "01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap(),
            restore_epoch,
            expired_through,
            newest_segment: newest.clone().map(|(path, _)| path),
            newest_segment_sha256: newest.map(|(_, sha256)| sha256),
            cleaned_through,
            other,
        },
    )
}

fn entry() -> impl Strategy<Value = LeafEntry> {
    let facts =
        (an_edition(), option::of(an_edition()), state(), sha(), schema_version(), instant(), option::of(instant()));
    let artefact =
        (text(), option::of(text())).prop_map(|(fingerprint, partial_of)| ArtefactRecord { fingerprint, partial_of });
    let routing = option::of((btree_set(text(), 0..3), any::<u64>()));
    (facts, option::of(other()), option::of(btree_map(text(), artefact, 0..3)), routing, other()).prop_map(
        |(
            (edition_id, previous, state, manifest_sha256, schema_version, at, release_at),
            source,
            artefacts,
            routing,
            other,
        )| LeafEntry {
            previous: previous.filter(|previous| *previous != edition_id),
            edition_id,
            state,
            manifest_sha256,
            schema_version,
            state_changed_at: at,
            release_at: release_at.filter(|_| state == EntryState::Embargoed),
            structure_source: source,
            artefacts,
            dataflows: routing.clone().map(|(dataflows, _)| dataflows.into_iter().collect()),
            pull_bytes: routing.map(|(_, bytes)| bytes),
            other,
        },
    )
}

fn leaf() -> impl Strategy<Value = Leaf> {
    (version(1), a_product(), any::<(bool, bool)>(), vec(entry(), 0..4), other()).prop_map(
        |(format_version, product_id, (is_data, is_final), entries, other)| {
            let mut leaf = Leaf::empty(product_id, if is_data { Kind::Data } else { Kind::Structure });
            leaf.format_version = format_version;
            leaf.lifecycle = if is_final { Lifecycle::Final } else { Lifecycle::Revisable };
            leaf.other = other;
            for mut entry in entries {
                if leaf.entry(&entry.edition_id).is_some() {
                    continue;
                }
                if entry.state == EntryState::Live && leaf.head(&entry.schema_version).is_some() {
                    entry.state = EntryState::Superseded;
                }
                leaf.insert(entry);
            }
            leaf
        },
    )
}

/// A change list of some products that a version knows, with every kind of item.
fn changes() -> impl Strategy<Value = Vec<Change>> {
    let mark = prop_oneof![Just(None), Just(Some(Mark::Tombstone)), state().prop_map(|state| Some(Mark::from(state)))];
    let item = (mark.clone(), mark, entry()).prop_map(|(from, to, entry)| {
        let state = to.and_then(Mark::state);
        let summary = state.map(|state| EntrySummary { state, ..EntrySummary::from(&entry) });
        (entry.edition_id, from, to, summary)
    });
    let items = vec(item, 0..3).prop_map(|items| {
        let items: BTreeMap<_, _> = items
            .into_iter()
            .map(|(edition_id, from, to, entry)| (edition_id.clone(), EntryChange { edition_id, from, to, entry }))
            .collect();
        items.into_values().collect()
    });
    let change = (option::of(sha()), option::of(sha()), items)
        .prop_map(|(from, to, entries)| (LeafChange { from, to }, entries));
    btree_map(a_product(), change, 0..3).prop_map(|changes| {
        let change = |(product_id, (leaf_sha256, entries))| Change { product_id, leaf_sha256, entries };
        changes.into_iter().map(change).collect()
    })
}

fn kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![Just(EventKind::Release), Just(EventKind::EmbargoChange), text().prop_map(EventKind::from)]
}

fn root() -> impl Strategy<Value = Root> {
    let numbers = (version(1), 2..=u64::MAX, any::<u64>(), instant(), any::<bool>());
    let event = (text(), text(), kind()).prop_map(|(actor, reason, kind)| Event { actor, reason, kind });
    let retired = btree_map((a_product(), an_edition()), instant(), 0..3);
    let products = btree_map(a_product(), sha(), 0..3);
    (numbers, event, products, retired, other(), option::of((sha(), changes())), other()).prop_map(
        |(
            (format_version, seq, restore_epoch, created_at, embargo),
            event,
            mut products,
            retired,
            extensions,
            history,
            other,
        )| {
            for change in history.iter().flat_map(|(_, changes)| changes) {
                products.remove(&change.product_id);
                products.extend(change.leaf_sha256.to.clone().map(|to| (change.product_id.clone(), to)));
            }
            let seq = Seq::new(seq).unwrap();
            Root {
                format_version,
                seq,
                previous_inventory: seq.before(),
                restore_epoch,
                created_at,
                producer: Producer { name: "n".to_owned(), version: "v".to_owned() },
                embargo,
                products: products
                    .into_iter()
                    .map(|(product, leaf_sha256)| (product, ProductRef { leaf_sha256 }))
                    .collect(),
                retired: retired
                    .into_iter()
                    .map(|((product_id, edition_id), retired_at)| Tombstone { product_id, edition_id, retired_at })
                    .collect(),
                event,
                extensions,
                previous_root_sha256: history.clone().map(|(base, _)| Some(base)),
                changes: history.map(|(_, changes)| changes),
                other,
            }
        },
    )
}

fn segment() -> impl Strategy<Value = Segment> {
    let roots = vec((root(), sha(), any::<bool>()), 1..4);
    (roots, any::<(u64, bool)>(), option::of((text(), sha())), instant(), text(), vec(sha(), 0..3), other()).prop_map(
        |(roots, (restore_epoch, is_expiry), previous, expired_at, actor, leaves, other)| {
            let roots: BTreeMap<_, _> =
                roots.into_iter().map(|(root, sha, lost)| (root.seq, (root, sha, lost))).collect();
            let mut lines = Vec::new();
            let mut unread = Vec::new();
            for (seq, (root, sha256, lost)) in &roots {
                if *lost && !is_expiry {
                    unread.push(*seq);
                    continue;
                }
                let mut line = SegmentLine::of(root, sha256.clone());
                line.restore_epoch = restore_epoch;
                if is_expiry && !line.has_history() {
                    (line.previous_root_sha256, line.changes) = (Some(Some(sha256.clone())), Some(vec![]));
                }
                lines.push(line);
            }
            let header = SegmentHeader {
                format_version: FormatVersion { major: 1, minor: 0 },
                catalog_id: "01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap(),
                kind: if is_expiry { SegmentKind::Expiry } else { SegmentKind::Restore },
                restore_epoch,
                first: *roots.keys().next().unwrap(),
                last: *roots.keys().next_back().unwrap(),
                previous_segment: previous.clone().map(|(path, _)| path),
                previous_segment_sha256: previous.map(|(_, sha256)| sha256),
                expired_at,
                actor,
                roots: roots.keys().copied().collect(),
                leaves: if is_expiry { leaves } else { vec![] },
                unread,
                other,
            };
            Segment { header, lines }
        },
    )
}

fn pending() -> impl Strategy<Value = PendingRegistration> {
    let ids = (a_product(), an_edition(), option::of(an_edition()), option::of(an_edition()), sha());
    let rest =
        (option::of(instant()), any::<bool>(), option::of(any::<bool>()), option::of(other()), text(), text(), other());
    (version(1), ids, rest).prop_map(
        |(
            format_version,
            (product_id, edition_id, previous, supersedes, manifest_sha256),
            (release_at, is_data, is_final, source, actor, reason, other),
        )| {
            let another = |id: Option<EditionId>| id.filter(|id| *id != edition_id);
            PendingRegistration {
                format_version,
                previous: another(previous),
                supersedes: another(supersedes),
                product_id,
                edition_id,
                manifest_sha256,
                release_at,
                kind: if is_data { Kind::Data } else { Kind::Structure },
                lifecycle: is_final.map(|is_final| if is_final { Lifecycle::Final } else { Lifecycle::Revisable }),
                structure_source: source,
                actor,
                reason,
                other,
            }
        },
    )
}

/// Decoded from what it encodes to it is the same, and so are the bytes.
fn comes_back<D: Document + PartialEq + std::fmt::Debug>(documents: impl Strategy<Value = D>) {
    runner(60)
        .run(&documents, |document| {
            let bytes = document.encode().unwrap();
            let again =
                D::decode(&bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)));
            assert_eq!(again, document);
            assert_eq!(again.encode().unwrap(), bytes);
            Ok(())
        })
        .unwrap();
}

#[test]
fn every_document_comes_back_from_its_bytes() {
    comes_back(catalog());
    comes_back(history());
    comes_back(leaf());
    comes_back(root());
    comes_back(pending());
    comes_back(segment().prop_map(|segment| segment.header));
    comes_back(root().prop_flat_map(|root| sha().prop_map(move |sha256| SegmentLine::of(&root, sha256))));
}

#[test]
fn hints_segments_and_journal_entries_come_back_from_their_bytes() {
    let current = (a_seq(), sha(), any::<u64>()).prop_map(|(seq, root_sha256, restore_epoch)| Current {
        seq,
        root_sha256,
        restore_epoch,
    });
    let journal = (a_product(), an_edition(), option::of(an_edition()), instant()).prop_map(
        |(product_id, edition_id, previous, sealed_at)| JournalEntry { product_id, edition_id, previous, sealed_at },
    );
    runner(60)
        .run(&(current, segment(), journal), |(current, segment, journal)| {
            assert_eq!(Current::decode(&current.encode()), Some(current));
            assert_eq!(Segment::decode(&segment.encode().unwrap()).unwrap(), segment);
            assert_eq!(JournalEntry::decode(&journal.edition_id, &journal.encode()).unwrap(), journal);
            Ok(())
        })
        .unwrap();
}
