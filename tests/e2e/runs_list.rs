//! Which runs `runs list` lists.

use serde_json::Value;

use crate::support::env::Env;
use crate::support::table::Table;

fn listed(env: &Env, args: &[&str]) -> Vec<String> {
    let document = env.jobctl(["runs", "list", "--json"].iter().chain(args)).exits(0).json();
    let runs = document["runs"].as_array().unwrap();
    runs.iter().map(|run: &Value| run["run_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn runs_are_listed_by_time_workflow_and_label() {
    let env = Env::with_catalog();
    let runs: Vec<String> = ["99100001", "99100002"]
        .into_iter()
        .map(|product| {
            Table::new(product, 3).write_zip(&env.path(&format!("{product}.zip")));
            let run = env.publish(product, &env.path(&format!("{product}.zip")));
            run["run_id"].as_str().unwrap().to_owned()
        })
        .collect();
    let both = [runs[1].clone(), runs[0].clone()];
    for (args, expected) in [
        (vec!["--since", "1h"], &both[..]),
        (vec!["--since", "2020-01-01"], &both),
        (vec!["--since", "2020-01-01T08:30:00Z"], &both),
        (vec!["--since", "2999-01-01"], &[]),
        (vec!["--since", "0s"], &[]),
        (vec!["--workflow", "publish"], &both),
        (vec!["--workflow", "discard"], &[]),
        (vec!["--label", "product=99100001"], &both[1..]),
        (vec!["--label", "product=99100001", "--label", "site=a"], &[]),
        (vec!["--workflow", "publish", "--since", "1d", "--product", "99100002"], &both[..1]),
    ] {
        assert_eq!(listed(&env, &args), expected, "{args:?}");
    }
    for (args, word) in [(["--since", "yesterday"], "12h"), (["--label", "product"], "product=14100287")] {
        env.jobctl(["runs", "list"].into_iter().chain(args)).exits(2).says(&[word]);
    }
}
