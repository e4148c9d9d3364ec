//! A catalog with one edition live, a revision ready to be published, and what must be true after any crash.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::env::Env;
use crate::support::table::Table;

pub const PRODUCT: &str = "99100001";

/// A catalog in which one edition of the product is live.
pub struct World {
    pub env: Env,
    revised: PathBuf,
    first: String,
}

impl World {
    pub fn new() -> Self {
        let env = Env::with_catalog();
        let table = Table::new(PRODUCT, 24);
        let first = env.path("first.zip");
        table.write_zip(&first);
        let published = env.publish(PRODUCT, &first);
        let revised = env.path("revised.zip");
        Table { revision: 150, ..table }.write_zip(&revised);
        let first = published["output"]["edition_id"].as_str().unwrap().to_owned();
        Self { env, revised, first }
    }

    /// The publish of the revision, to be started.
    pub fn publish_revision(&self) -> Command {
        let source = self.revised.display().to_string();
        let mut command = self.env.command(["run", "publish", "--product", PRODUCT, "--source", &source, "--json"]);
        command.stdin(Stdio::null());
        command
    }

    /// The newest run, as `runs show` tells it; `None` before there is a second run.
    pub fn newest_run(&self) -> Option<Value> {
        let runs = self.env.json(["runs", "list"]);
        let runs = runs["runs"].as_array().unwrap();
        (runs.len() > 1).then(|| self.env.json(["runs", "show", runs[0]["run_id"].as_str().unwrap()]))
    }

    /// The results that are recorded: step, iteration and output.
    pub fn recorded(run: &Value) -> Vec<(String, Value)> {
        let steps = run["steps"].as_array().unwrap();
        let done = steps.iter().filter(|step| step["state"] == "succeeded");
        done.map(|step| (step["name"].as_str().unwrap().to_owned(), step["output"].clone())).collect()
    }

    /// The content fingerprint of the live edition.
    pub fn live_fingerprint(&self) -> String {
        let edition = self.live_edition();
        let shown = self.env.json(["edition", "show", &edition, "--product", PRODUCT]);
        shown["manifest"]["content_fingerprint"].as_str().unwrap().to_owned()
    }

    fn live_edition(&self) -> String {
        let inventory = self.env.json(["inventory", "show"]);
        let products = inventory["products"].as_array().unwrap();
        let live: Vec<_> = products.iter().filter(|p| p["state"] == "live").collect();
        assert_eq!(live.len(), 1, "exactly one edition is live: {inventory}");
        live[0]["edition_id"].as_str().unwrap().to_owned()
    }

    /// Asserts what must hold once the revision was published in the end, whatever happened on the way.
    #[track_caller]
    pub fn assert_published(&self, fingerprint: &str, context: &str) {
        let live = self.live_edition();
        assert_ne!(live, self.first, "{context}: the revision is not live");
        assert_eq!(self.live_fingerprint(), fingerprint, "{context}: the content is another");
        self.env.jobctl(["edition", "check", &live, "--product", PRODUCT]).exits(0);
        let journal = self.env.path(&format!("catalog/products/{PRODUCT}/journal"));
        let entries = std::fs::read_dir(journal).map(|dir| dir.count()).unwrap_or_default();
        assert_eq!(entries, 0, "{context}: a journal entry is left");
        let editions = self.env.json(["edition", "list", "--product", PRODUCT]);
        for edition in editions["editions"].as_array().unwrap() {
            assert_eq!(edition["sealed"], true, "{context}: an unsealed edition is left: {editions}");
        }
        let shown = self.env.json(["edition", "show", &live, "--product", PRODUCT]);
        assert_eq!(shown["manifest"]["previous"], self.first.as_str(), "{context}: built on another edition");
    }

    /// Asserts that readers see the first edition, whole, while the revision is not live.
    #[track_caller]
    pub fn assert_one_live(&self, context: &str) {
        let live = self.live_edition();
        let check = self.env.jobctl(["edition", "check", &live, "--product", PRODUCT, "--at", "receive"]);
        assert_eq!(check.code, Some(0), "{context}: what is live is damaged: {check:?}");
    }
}
