//! `jobctl verify`: the catalog held against what is there.

use std::collections::{BTreeMap, BTreeSet};

use activities::inventory::verify as verify_catalog;
use engine_rules::failure::ActivityError as _;
use serde_json::json;

use crate::args::Verify;
use crate::exit::{Ended, Exit};
use crate::output::{Output, grouped, size};
use crate::wire::World;

/// Carries out `jobctl verify`. Reads only: no lock, and no state database (D32).
///
/// # Errors
/// What keeps it from looking. What is wrong with the catalog is a finding, and exit code 6.
pub fn verify(world: &World, out: Output, args: &Verify) -> Result<Exit, Ended> {
    let found = verify_catalog(world.store.as_ref(), &world.config.catalog, args.full)
        .map_err(|error| Ended::from(error.to_failure()))?;
    let hashed = if args.full { format!("{} of them hashed", size(found.hashed_bytes)) } else { "by size".to_owned() };
    out.line(format!(
        "version {}: {} versions, {} leaves, {} editions, {} files ({hashed})",
        found.seq,
        grouped(found.versions),
        grouped(found.leaves),
        grouped(found.editions),
        grouped(found.files),
    ));
    if found.findings.is_empty() {
        out.line("no finding");
    } else {
        let rows = found.findings.iter().map(|finding| {
            [finding.code.to_owned(), finding.subject.clone(), finding.found.clone(), finding.expected.clone()]
        });
        out.table(["CODE", "SUBJECT", "FOUND", "EXPECTED"], rows.collect());
        // Many findings have one fix.
        let mut fixes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for finding in &found.findings {
            fixes.entry(&finding.fix).or_default().insert(finding.code);
        }
        for (fix, codes) in fixes {
            out.line(format!("fix of {}: {fix}", codes.into_iter().collect::<Vec<_>>().join(", ")));
        }
    }
    out.document(
        "verify",
        json!({
            "seq": found.seq,
            "root_sha256": found.root_sha256,
            "full": args.full,
            "versions": found.versions,
            "leaves": found.leaves,
            "editions": found.editions,
            "files": found.files,
            "hashed_bytes": found.hashed_bytes,
            "findings": found.findings,
        }),
    );
    Ok(if found.findings.is_empty() { Exit::Done } else { Exit::Findings })
}
