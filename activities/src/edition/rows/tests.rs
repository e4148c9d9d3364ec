//! The keep rule as a table, and the table against its rows after any sequence of revisions.

use std::sync::Arc;

use duckdb::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use engine_rules::activity::ActivityContext;
use proptest::prelude::*;

use super::*;
use crate::duck::{Access, DuckSettings};
use crate::edition::stage::stage;
use crate::edition::{ColumnType, LINE_COLUMN, ObservationColumn, ObservationSource, SourceError, Stop, Tools};
use crate::fs::RealFs;

fn held(rows: &[u64]) -> Vec<super::Held> {
    rows.iter().enumerate().map(|(n, rows)| super::Held { filename: n.to_string(), rows: *rows }).collect()
}

fn kept(rows: &[u64], changed: &[usize], staged: u64) -> Vec<usize> {
    let changed = changed.iter().map(ToString::to_string).collect();
    keep(&held(rows), &changed, staged).iter().map(|name| name.parse().unwrap()).collect()
}

#[test]
fn unchanged_files_stay_unless_that_leaves_many_small_ones_or_little_at_all() {
    assert_eq!(kept(&[800, 100, 100], &[2], 1010), [0, 1]);
    assert_eq!(kept(&[800, 100, 100], &[], 1000), [0, 1, 2]);
    assert_eq!(kept(&[800, 100, 100], &[0], 1000), [0; 0], "a fifth is not worth keeping");
    assert_eq!(kept(&[500, 500], &[0], 1000), [1], "half is");
    assert_eq!(kept(&[], &[], 0), [0; 0]);
    let many = [900, 10, 10, 10, 10, 10, 10, 10, 10, 10];
    assert_eq!(kept(&many[..9], &[], 980), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(kept(&many, &[], 990), [0], "the ninth small file makes them one");
}

/// Dimension and period.
type Key = (u8, u8);
/// Measure and attribute.
type Held = (u16, bool);
type Table = std::collections::BTreeMap<Key, Held>;
type Text<'a> = &'a dyn Fn(&Key, &Held) -> Option<String>;

/// A source of a table's rows.
struct Of<'a>(&'a Table);

impl ObservationSource for Of<'_> {
    fn columns(&self) -> Vec<ObservationColumn> {
        let column =
            |name: &str, role| ObservationColumn { name: name.to_owned(), role, column_type: ColumnType::Text };
        vec![
            column("K", ColumnRole::Dimension),
            column("TIME_PERIOD", ColumnRole::TimePeriod),
            column("V", ColumnRole::Measure),
            column("A", ColumnRole::Attribute),
        ]
    }

    fn for_each_batch(&self, each: &mut dyn FnMut(RecordBatch) -> Result<(), Stop>) -> Result<(), SourceError> {
        let text = |of: Text<'_>| {
            Arc::new(self.0.iter().map(|(key, held)| of(key, held)).collect::<StringArray>()) as ArrayRef
        };
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("K", text(&|key, _| Some(format!("k{}", key.0))), true),
            ("TIME_PERIOD", text(&|key, _| Some((2000 + u32::from(key.1)).to_string())), true),
            ("V", text(&|_, held| (held.0 % 5 > 0).then(|| format!("{}.5", held.0))), true),
            ("A", text(&|_, held| held.1.then(|| "p".to_owned())), true),
            (LINE_COLUMN, Arc::new(Int64Array::from_iter_values(0..self.0.len() as i64)) as ArrayRef, false),
        ]);
        each(batch.unwrap())?;
        Ok(())
    }
}

/// How one table becomes the next.
#[derive(Debug, Clone)]
enum Revision {
    Same,
    Change(u8, u16),
    AddPeriod(u8, u16),
    Remove(u8),
    Renew(u16),
}

fn revise(table: &mut Table, revision: &Revision) {
    let keys: Vec<Key> = table.keys().copied().collect();
    let nth = |n: u8| keys.get(usize::from(n) % keys.len().max(1));
    match revision {
        Revision::Same => {}
        Revision::Change(n, value) => {
            if let Some(key) = nth(*n) {
                table.insert(*key, (*value, value % 2 == 0));
            }
        }
        Revision::AddPeriod(period, value) => table.extend((0..4).map(|key| ((key, *period), (*value, false)))),
        Revision::Remove(n) => {
            if let Some(key) = nth(*n) {
                table.remove(key);
            }
        }
        Revision::Renew(value) => table.values_mut().for_each(|held| held.0 = held.0.wrapping_add(*value)),
    }
}

fn revision() -> impl Strategy<Value = Revision> {
    prop_oneof![
        1 => Just(Revision::Same),
        3 => (any::<u8>(), any::<u16>()).prop_map(|(n, value)| Revision::Change(n, value)),
        6 => (any::<u8>(), any::<u16>()).prop_map(|(period, value)| Revision::AddPeriod(period, value)),
        2 => any::<u8>().prop_map(Revision::Remove),
        1 => any::<u16>().prop_map(Revision::Renew),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_revised_the_table_holds_exactly_the_staged_rows(
        revisions in proptest::collection::vec(revision(), 8..24)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let duck = DuckSettings { threads: 2, ..DuckSettings::new(dir.path().join("temp")) };
        let session = Session::open(&duck, "rows").unwrap();
        session.attach_lake(&dir.path().join("t.ducklake"), &dir.path().join("data"), Access::Write).unwrap();
        let context = ActivityContext::detached();
        let tools = Tools { fs: &RealFs, clock: &NoClock, duck: &duck, context: &context };
        let lake_table = LakeTable { schema: "s".to_owned(), name: "t".to_owned() };
        let mut table: Table = (0..40).map(|n| ((n % 4, n / 4), (u16::from(n) * 7, n % 3 == 0))).collect();
        for (number, revision) in std::iter::once(&Revision::Same).chain(&revisions).enumerate() {
            revise(&mut table, revision);
            let staged = stage(&tools, &session, number, &Of(&table)).unwrap();
            let written = write(&session, &lake_table, &staged).unwrap();
            let left = |a: &str, b: &str| -> u64 {
                session.row("compare", &format!("SELECT count(*) FROM ({a} EXCEPT ALL {b})"), |row| row.get(0)).unwrap()
            };
            let (held, wanted) = (format!("SELECT * FROM {}", lake_table.sql()), staged.select());
            prop_assert_eq!(left(&held, &wanted), 0, "rows too many after {:?}", revision);
            prop_assert_eq!(left(&wanted, &held), 0, "rows too few after {:?}", revision);
            if matches!(revision, Revision::Same) && number > 0 {
                prop_assert_eq!(written.new_rows, 0, "the same rows were written again");
            }
            let deletions = lake::referenced_files(&session).unwrap().iter().filter(|file| file.deletes).count();
            prop_assert_eq!(deletions, 0, "a revision left a delete file");
        }
    }
}

struct NoClock;

impl engine_rules::clock::Clock for NoClock {
    fn now_ms(&self) -> i64 {
        0
    }

    fn monotonic_us(&self) -> u64 {
        0
    }

    fn new_id(&self) -> uuid::Uuid {
        uuid::Uuid::nil()
    }

    fn chance(&self) -> f64 {
        0.0
    }

    fn sleep_ms(&self, _: u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}
