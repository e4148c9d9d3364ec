//! What every store must do, as functions that a test of each implementation calls.

use std::sync::Arc;

use bytes::Bytes;

use super::{Create, Delete, Listing, Replace, Store, StoreError};

/// Runs the whole contract; `new` makes an empty store.
///
/// # Errors
/// [`StoreError`] when the store fails where it should not.
///
/// # Panics
/// When the store does not keep the contract.
pub fn suite(new: &dyn Fn() -> Arc<dyn Store>) -> Result<(), StoreError> {
    an_absent_object_is_none(new().as_ref())?;
    a_create_never_replaces(new().as_ref())?;
    one_of_racing_creates_wins(&new())?;
    several_creates_are_each_as_one(new().as_ref())?;
    a_replacement_asks_for_what_is_there(new().as_ref())?;
    no_replacement_of_racing_ones_is_lost(&new())?;
    a_listing_is_one_level_deep(new().as_ref())?;
    a_deleted_name_is_free(new().as_ref())?;
    a_conditional_delete_asks_for_what_is_there(new().as_ref())?;
    one_of_racing_conditional_deletes_removes(&new())?;
    paths_stay_inside(new().as_ref());
    time_does_not_go_back(new().as_ref())?;
    a_lock_is_free_once_it_is_dropped(new().as_ref())
}

fn an_absent_object_is_none(store: &dyn Store) -> Result<(), StoreError> {
    assert_eq!(store.get("CURRENT")?, None);
    assert_eq!(store.get("inventory/000000000001.json")?, None);
    store.create("CURRENT", &Bytes::from_static(b"x"))?;
    assert_eq!(store.get("CURRENT/inner")?, None, "an object is not a folder");
    Ok(())
}

fn a_create_never_replaces(store: &dyn Store) -> Result<(), StoreError> {
    let (first, second) = (Bytes::from_static(b"first"), Bytes::from_static(b"second"));
    assert_eq!(store.create("a/b/c.json", &first)?, Create::Won);
    assert_eq!(store.create("a/b/c.json", &second)?, Create::Lost(first.clone()));
    assert_eq!(store.create("a/b/c.json", &first)?, Create::Won, "the same bytes are a repetition");
    assert_eq!(store.get("a/b/c.json")?, Some(first));
    let empty = Bytes::new();
    assert_eq!(store.create("empty", &empty)?, Create::Won);
    assert_eq!(store.get("empty")?, Some(empty), "an empty object is there");
    store.persist("a/b/c.json")
}

/// What `work` gives in threads that start together.
fn race<T: Send>(store: &Arc<dyn Store>, threads: usize, work: impl Fn(&dyn Store, usize) -> T + Sync) -> Vec<T> {
    let gate = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|n| {
                let (gate, work) = (&gate, &work);
                scope.spawn(move || {
                    gate.wait();
                    work(store.as_ref(), n)
                })
            })
            .collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    })
}

fn one_of_racing_creates_wins(store: &Arc<dyn Store>) -> Result<(), StoreError> {
    for round in 0..20 {
        let path = format!("inventory/{round:012}.json");
        let outcomes = race(store, 4, |store, n| {
            let bytes = Bytes::from(n.to_string().repeat(1000));
            (bytes.clone(), store.create(&path, &bytes))
        });
        let mut won = None;
        for (bytes, outcome) in outcomes {
            if outcome? == Create::Won {
                assert_eq!(won, None, "two creates of {path} won");
                won = Some(bytes);
            }
        }
        assert!(won.is_some(), "no create of {path} won");
        assert_eq!(store.get(&path)?, won, "the winner's bytes are not there");
    }
    Ok(())
}

fn several_creates_are_each_as_one(store: &dyn Store) -> Result<(), StoreError> {
    let object = |n: usize| (format!("inventory/leaves/{n}.json"), Bytes::from(n.to_string().repeat(1 + n)));
    assert_eq!(store.create_all(&[])?, []);
    let objects: Vec<_> = (0..40).map(object).collect();
    assert_eq!(store.create_all(&objects)?, vec![Create::Won; 40]);
    for (path, bytes) in &objects {
        assert_eq!(store.get(path)?.as_ref(), Some(bytes), "{path}");
    }
    // One that is there already, one that others hold, and new ones beside them.
    let (taken, theirs) = ("inventory/leaves/40.json".to_owned(), Bytes::from_static(b"theirs"));
    store.create(&taken, &theirs)?;
    let mixed: Vec<_> = (38..43).map(object).collect();
    let outcomes = store.create_all(&mixed)?;
    assert_eq!(outcomes, [Create::Won, Create::Won, Create::Lost(theirs.clone()), Create::Won, Create::Won]);
    assert_eq!(store.get(&taken)?, Some(theirs));
    assert_eq!(store.get(&mixed[4].0)?.as_ref(), Some(&mixed[4].1));
    assert_eq!(store.list("inventory/leaves")?.objects.len(), 43, "something else was left");
    Ok(())
}

fn a_replacement_asks_for_what_is_there(store: &dyn Store) -> Result<(), StoreError> {
    let (one, two, three) = (Bytes::from_static(b"1"), Bytes::from_static(b"2"), Bytes::from_static(b"3"));
    assert_eq!(store.replace("CURRENT", Some(&one), &two)?, Replace::Changed(None), "there was nothing to replace");
    assert_eq!(store.replace("CURRENT", None, &one)?, Replace::Done);
    assert_eq!(store.replace("CURRENT", None, &two)?, Replace::Changed(Some(one.clone())));
    assert_eq!(store.replace("CURRENT", Some(&one), &two)?, Replace::Done);
    assert_eq!(store.replace("CURRENT", Some(&one), &three)?, Replace::Changed(Some(two.clone())));
    assert_eq!(store.get("CURRENT")?, Some(two));
    Ok(())
}

fn no_replacement_of_racing_ones_is_lost(store: &Arc<dyn Store>) -> Result<(), StoreError> {
    const EACH: u64 = 25;
    fn number(bytes: Option<&Bytes>) -> u64 {
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.and_then(|text| text.split(' ').next()).and_then(|text| text.parse().ok()).unwrap_or_default()
    }
    let outcomes = race(store, 4, |store, n| -> Result<(), StoreError> {
        for _ in 0..EACH {
            let mut found = store.get("CURRENT")?;
            loop {
                // With the writer's name in it: equal bytes of two writers would look like one write.
                let next = Bytes::from(format!("{} by {n}", number(found.as_ref()) + 1));
                match store.replace("CURRENT", found.as_ref(), &next)? {
                    Replace::Done => break,
                    Replace::Changed(now) => found = now,
                }
            }
        }
        Ok(())
    });
    for outcome in outcomes {
        outcome?;
    }
    assert_eq!(number(store.get("CURRENT")?.as_ref()), 4 * EACH, "a replacement was lost");
    Ok(())
}

fn a_listing_is_one_level_deep(store: &dyn Store) -> Result<(), StoreError> {
    assert_eq!(store.list("")?, Listing::default());
    assert_eq!(store.list("products/none")?, Listing::default());
    for path in ["catalog.json", "products/b/data/x", "products/a/journal/2.json", "products/a/journal/1.json"] {
        store.create(path, &Bytes::from_static(b"x"))?;
    }
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(store.list("")?, Listing { objects: names(&["catalog.json"]), folders: names(&["products"]) });
    assert_eq!(store.list("products")?, Listing { objects: vec![], folders: names(&["a", "b"]) });
    assert_eq!(store.list("products/a/journal")?, Listing { objects: names(&["1.json", "2.json"]), folders: vec![] });
    assert_eq!(store.list("catalog.json")?, Listing::default(), "an object is not a folder");
    Ok(())
}

fn a_deleted_name_is_free(store: &dyn Store) -> Result<(), StoreError> {
    let (one, two) = (Bytes::from_static(b"1"), Bytes::from_static(b"2"));
    assert!(!store.delete("a/x")?, "there was nothing to delete");
    store.create("a/x", &one)?;
    assert!(store.delete("a/x")?);
    assert_eq!(store.get("a/x")?, None);
    assert_eq!(store.create("a/x", &two)?, Create::Won);
    Ok(())
}

fn a_conditional_delete_asks_for_what_is_there(store: &dyn Store) -> Result<(), StoreError> {
    let (one, two) = (Bytes::from_static(b"1"), Bytes::from_static(b"2"));
    assert_eq!(store.delete_if("a/x", &one)?, Delete::Absent, "there was nothing to delete");
    store.create("a/x", &one)?;
    assert_eq!(store.delete_if("a/x", &two)?, Delete::Changed(one.clone()));
    assert_eq!(store.get("a/x")?, Some(one.clone()), "an object with other bytes is gone");
    assert_eq!(store.delete_if("a/x", &one)?, Delete::Done);
    assert_eq!(store.get("a/x")?, None);
    Ok(())
}

fn one_of_racing_conditional_deletes_removes(store: &Arc<dyn Store>) -> Result<(), StoreError> {
    let bytes = Bytes::from_static(b"once");
    store.create("a/x", &bytes)?;
    let outcomes = race(store, 4, |store, _| store.delete_if("a/x", &bytes));
    let outcomes: Vec<_> = outcomes.into_iter().collect::<Result<_, _>>()?;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Delete::Done).count(), 1, "found {outcomes:?}");
    Ok(())
}

fn paths_stay_inside(store: &dyn Store) {
    for path in ["", "/", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a\\b", "a\0b"] {
        assert!(matches!(store.get(path), Err(StoreError::BadPath { .. })), "{path:?} was read");
        let created = store.create(path, &Bytes::from_static(b"x"));
        assert!(matches!(created, Err(StoreError::BadPath { .. })), "{path:?} was created");
        assert!(matches!(store.delete(path), Err(StoreError::BadPath { .. })), "{path:?} was deleted");
    }
}

fn time_does_not_go_back(store: &dyn Store) -> Result<(), StoreError> {
    let first = store.now()?;
    assert!(store.now()? >= first);
    Ok(())
}

fn a_lock_is_free_once_it_is_dropped(store: &dyn Store) -> Result<(), StoreError> {
    store.prepare()?;
    for _ in 0..2 {
        let lock = store.lock();
        assert!(lock.is_ok(), "the lock was not free: {lock:?}");
    }
    Ok(())
}
