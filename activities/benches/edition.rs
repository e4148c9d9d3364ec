//! Measures the edition on a made-up table: build, seal by phase, check at publish, peak memory. One JSON object a line.
//!
//!     cargo bench -p activities --bench edition -- [ROWS_IN_MILLIONS]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::time::Instant;

use activities::duck::DuckSettings;
use activities::edition::testing::Synthetic;
use activities::edition::{BoundTable, BuildOrder, CheckOptions, Profile, SealOrder, Tools, build, check, seal};
use activities::fs::RealFs;
use engine_rules::activity::ActivityContext;
use engine_rules::clock::Clock;
use serde_json::{Map, Value, json};

struct WallClock(Instant);

impl Clock for WallClock {
    fn now_ms(&self) -> i64 {
        1_790_000_000_000 + i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn new_id(&self) -> uuid::Uuid {
        uuid::Uuid::nil()
    }

    fn chance(&self) -> f64 {
        0.5
    }

    fn sleep_ms(&self, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

/// The most memory that this process ever had, in MiB; it starts again afterwards where the system allows it.
fn take_peak_rss_mb() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let _ = fs::write("/proc/self/clear_refs", "5");
    Some(kib / 1024)
}

/// Processor time of this process so far, in hundredths of a second: what does not depend on who else is at work.
fn cpu_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let field = |n: usize| fields.get(n).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    field(11) + field(12)
}

fn seconds(us: u64) -> Value {
    json!((us as f64 / 1000.0).round() / 1000.0)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
fn main() -> Result<(), Box<dyn Error>> {
    let millions: u64 =
        std::env::args().skip(1).find(|arg| !arg.starts_with('-')).map_or(Ok(1), |text| text.parse())?;
    let first = Synthetic { members: 5000, products: 5, periods: 20 * millions, revision: 0 };
    let artefacts = first.artefacts();
    let binding = Synthetic::binding();
    let dir = tempfile::tempdir()?;
    let product = dir.path().join("product");
    let duck = DuckSettings::new(dir.path().join("temp"));
    let clock = WallClock(Instant::now());
    let context = ActivityContext::detached();
    let tools = Tools { fs: &RealFs, clock: &clock, duck: &duck, context: &context };
    let product_id = Synthetic::product_id();

    let cases = [("first", first), ("unchanged", first), ("revised", Synthetic { revision: 1, ..first })];
    for (n, (case, source)) in cases.into_iter().enumerate() {
        let edition_id = Synthetic::edition_id(n as u64);
        let previous = n.checked_sub(1).map(|n| Synthetic::edition_id(n as u64));
        let _ = take_peak_rss_mb();
        let (at_us, at_cpu) = (clock.monotonic_us(), cpu_ticks());
        let built = build(
            &tools,
            &BuildOrder {
                product_dir: &product,
                product_id: &product_id,
                edition_id: &edition_id,
                previous: previous.as_ref(),
                artefacts: &artefacts,
                tables: &[BoundTable { binding: &binding, source: &source }],
            },
        )?;
        let (built_us, built_cpu) = (clock.monotonic_us(), cpu_ticks());
        let peak_build_mb = take_peak_rss_mb();
        let sealed = seal(
            &tools,
            &SealOrder {
                product_dir: &product,
                product_id: &product_id,
                edition_id: &edition_id,
                previous: previous.as_ref(),
                producer: None,
                is_final: false,
                tiers: &[],
                producer_fields: Map::new(),
                extensions: BTreeMap::new(),
                provenance: None,
            },
        )?;
        let (sealed_us, sealed_cpu) = (clock.monotonic_us(), cpu_ticks());
        let peak_seal_mb = take_peak_rss_mb();
        let folder = product.join(edition_id.as_str());
        let report = check(&tools, &folder, &CheckOptions::at(Profile::Publish))?;
        let (checked_us, checked_cpu) = (clock.monotonic_us(), cpu_ticks());
        let peak_check_mb = take_peak_rss_mb();
        if !report.is_clean() {
            return Err(format!("{case}: {:?}", report.findings).into());
        }
        let mut line = json!({
            "bench": "edition",
            "case": case,
            "rows": built.rows,
            "new_rows": built.tables[0].new_rows,
            "build_s": seconds(built_us - at_us),
            "seal_s": seconds(sealed_us - built_us),
            "check_s": seconds(checked_us - sealed_us),
            "build_cpu_s": seconds((built_cpu - at_cpu) * 10_000),
            "seal_cpu_s": seconds((sealed_cpu - built_cpu) * 10_000),
            "check_cpu_s": seconds((checked_cpu - sealed_cpu) * 10_000),
            "peak_rss_mb": peak_build_mb.max(peak_seal_mb).max(peak_check_mb),
            "peak_rss_build_mb": peak_build_mb,
            "peak_rss_seal_mb": peak_seal_mb,
            "peak_rss_check_mb": peak_check_mb,
            "data_bytes": sealed.manifest.files.iter().filter(|file| file.carried_from.is_none()).map(|file| file.size_bytes).sum::<u64>(),
            "carried_files": sealed.carried_files(),
        });
        for phase in &sealed.phases {
            line[format!("seal_{}_s", phase.name)] = seconds(phase.took_us);
        }
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}
