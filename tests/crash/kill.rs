//! `kill -9` at random moments.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};

use crate::world::World;

/// Kills a publish of the revision at a random moment within `longest`, and says whether it was alive.
fn kill(world: &World, after: Duration) -> bool {
    let mut child = world.publish_revision().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    #[allow(clippy::disallowed_methods, reason = "the moment is what is tested")]
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap().signal() == Some(9)
}

#[test]
fn a_hundred_random_kills_are_survived() {
    survive(100);
}

#[test]
fn nightly_two_thousand_random_kills_are_survived() {
    survive(2_000);
}

fn survive(kills: usize) {
    let seed = std::env::var("JOBCTL_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| {
        use std::hash::{BuildHasher as _, RandomState};
        RandomState::new().hash_one(0)
    });
    println!("JOBCTL_TEST_SEED={seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);

    let reference = World::new();
    #[allow(clippy::disallowed_methods, reason = "a kill is to fall within a publish")]
    let begun = std::time::Instant::now();
    assert!(reference.publish_revision().output().unwrap().status.success());
    let longest = begun.elapsed();
    let fingerprint = reference.live_fingerprint();

    let mut killed = 0;
    while killed < kills {
        let world = World::new();
        // Up to four kills of one run: each takes it up and is killed in turn. A fifth within one step would block the run.
        for _ in 0..4 {
            let after = longest.mul_f64(random.random_range(0.02..1.0));
            if !kill(&world, after) {
                break;
            }
            killed += 1;
            // A kill may come between the last commit and the end of the process.
            if world.newest_run().is_some_and(|run| run["run"]["state"] == "succeeded") {
                break;
            }
            world.assert_one_live(&format!("seed {seed}, after {killed} kills"));
        }
        if world.newest_run().is_none_or(|run| run["run"]["state"] != "succeeded") {
            let output = world.publish_revision().output().unwrap();
            assert!(output.status.success(), "seed {seed}, after {killed} kills: {output:?}");
        }
        world.assert_published(&fingerprint, &format!("seed {seed}, after {killed} kills"));
    }
}
