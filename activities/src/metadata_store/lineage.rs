//! The ancestors of each item of a scheme, which the store keeps beside its parent.

use std::collections::HashMap;

use super::error::MetadataError;

/// How deep an item may stand. Real lists reach ten or twenty; each item is stored with all its ancestors, so that a chain
/// without a limit would grow with the square of the list.
const MAX_DEPTH: usize = 1000;

/// For each item, the ids of its ancestors from the top down. A parent that is not among the items, as in a partial
/// list that was cut without it, ends the chain.
///
/// # Errors
/// [`MetadataError::Duplicate`] when two items have one id, as the URN that `urn_of` gives it, and
/// [`MetadataError::ParentLoop`] when an item is its own ancestor, [`MetadataError::OutOfRange`] beyond [`MAX_DEPTH`].
pub(super) fn ancestors(
    artefact: &str,
    items: &[(&str, Option<&str>)],
    urn_of: impl Fn(&str) -> String,
) -> Result<Vec<Vec<String>>, MetadataError> {
    let mut places = HashMap::with_capacity(items.len());
    for (place, (id, _)) in items.iter().enumerate() {
        if places.insert(*id, place).is_some() {
            return Err(MetadataError::Duplicate { urn: urn_of(id) });
        }
    }
    let parents: Vec<Option<usize>> =
        items.iter().map(|(_, parent)| parent.and_then(|parent| places.get(parent)).copied()).collect();
    refuse_loops(artefact, items, &parents)?;
    let lineage = |place: usize| {
        let up = std::iter::successors(parents[place], |&at| parents[at]);
        let mut ids: Vec<String> = up.take(MAX_DEPTH + 1).map(|at| items[at].0.to_owned()).collect();
        if ids.len() > MAX_DEPTH {
            let (urn, found) = (urn_of(items[place].0), i64::try_from(ids.len()).unwrap_or(i64::MAX));
            return Err(MetadataError::OutOfRange { urn, field: "depth", found, range: "at most 1000 ancestors" });
        }
        ids.reverse();
        Ok(ids)
    };
    (0..items.len()).map(lineage).collect()
}

/// Walks up from each item, and stops where an earlier walk has been: each item is walked over once.
fn refuse_loops(
    artefact: &str,
    items: &[(&str, Option<&str>)],
    parents: &[Option<usize>],
) -> Result<(), MetadataError> {
    let mut walked_by = vec![usize::MAX; items.len()];
    for start in 0..items.len() {
        let mut next = Some(start);
        while let Some(at) = next.filter(|&at| walked_by[at] == usize::MAX) {
            walked_by[at] = start;
            next = parents[at];
        }
        if let Some(at) = next.filter(|&at| walked_by[at] == start) {
            return Err(MetadataError::ParentLoop { urn: artefact.to_owned(), item: items[at].0.to_owned() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(items: &[(&str, Option<&str>)]) -> Result<Vec<Vec<String>>, MetadataError> {
        ancestors("LIST", items, str::to_owned)
    }

    #[test]
    fn ancestors_go_from_the_top_down() {
        let items = [("c", Some("b")), ("a", None), ("b", Some("a")), ("d", Some("not here"))];
        assert_eq!(run(&items).unwrap(), [vec!["a", "b"], vec![], vec!["a"], vec![]]);
    }

    #[test]
    fn a_loop_and_a_double_are_refused() {
        for looped in [
            vec![("a", Some("a"))],
            vec![("x", None), ("a", Some("b")), ("b", Some("c")), ("c", Some("a"))],
            vec![("below", Some("a")), ("a", Some("b")), ("b", Some("a"))],
        ] {
            assert!(matches!(run(&looped), Err(MetadataError::ParentLoop { .. })), "{looped:?}");
        }
        assert!(matches!(run(&[("a", None), ("a", None)]), Err(MetadataError::Duplicate { urn }) if urn == "a"));
    }

    #[test]
    fn a_chain_without_end_is_refused() {
        let ids: Vec<String> = (0..100_000).map(|at| at.to_string()).collect();
        let items: Vec<(&str, Option<&str>)> =
            (0..ids.len()).map(|at| (ids[at].as_str(), ids.get(at + 1).map(String::as_str))).collect();
        assert!(matches!(run(&items), Err(MetadataError::OutOfRange { field: "depth", .. })));
        assert_eq!(run(&items[items.len() - 1000..]).unwrap()[0].len(), 999);
    }
}
