//! A folder with a catalog, a state database and the binary that works on them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub const JOBCTL: &str = env!("CARGO_BIN_EXE_jobctl");

/// A working folder of its own. It goes when the value goes.
pub struct Env {
    dir: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said on standard error.
    pub stderr: String,
}

impl Ran {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code, and shows everything if it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that the output, on either stream, holds every one of `texts`.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Self {
        let all = format!("{}{}", self.stdout, self.stderr);
        for text in texts {
            assert!(all.contains(text), "{text:?} is not in:\n{all}");
        }
        self
    }

    /// The JSON document that was printed.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr))
    }
}

impl Env {
    /// A folder with a fresh catalog.
    pub fn with_catalog() -> Self {
        let env = Self::empty();
        env.jobctl(["init", "--title", "A test"]).exits(0);
        env
    }

    /// An empty folder.
    pub fn empty() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// The folder, or something in it.
    pub fn path(&self, inner: &str) -> PathBuf {
        self.dir.path().join(inner)
    }

    /// A command of the binary in the folder, to be given more and started.
    pub fn command<I, S>(&self, args: I) -> Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = Command::new(JOBCTL);
        command.args(args).current_dir(self.dir.path()).env_remove("JOBCTL_CONFIG").env_remove("JOBCTL_CRASH_AT");
        command
    }

    /// Runs the binary in the folder.
    pub fn jobctl<I, S>(&self, args: I) -> Ran
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        Ran::of(&self.command(args).output().unwrap())
    }

    /// Runs the binary and gives its JSON document.
    #[track_caller]
    pub fn json<const N: usize>(&self, args: [&str; N]) -> Value {
        self.jobctl(args.into_iter().chain(["--json"])).exits(0).json()
    }

    /// Publishes `source` as `product` and gives the run's document.
    #[track_caller]
    pub fn publish(&self, product: &str, source: &Path) -> Value {
        let source = source.display().to_string();
        self.json(["run", "publish", "--product", product, "--source", &source])
    }

    /// Every file of the catalog with the SHA-256 of its bytes, the lock file left out.
    pub fn catalog_bytes(&self) -> BTreeMap<String, String> {
        let root = self.path("catalog");
        let mut files = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                if path.is_dir() {
                    files.insert(format!("{name}/"), String::new());
                    folders.push(path);
                } else if name != "LOCK" {
                    let bytes = std::fs::read(&path).unwrap();
                    files.insert(name, catalog_rules::ids::Sha256Hex::of(&bytes).to_string());
                }
            }
        }
        files
    }
}
