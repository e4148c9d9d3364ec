//! What has to hold before old versions expire on a server (*catalog* §6.9, Expiry gates; H20). A gate that is closed
//! skips the expiry and alerts; the release still happens.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::opt_in::StoreKind;
use crate::instant::Instant;

/// A pod's answer to `GET /`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodAnswer {
    /// It told its `sdmxlib_version`.
    Version(String),
    /// It answered without the field.
    NoField,
    /// It did not answer: why.
    Unreachable(String),
}

/// A pod that the Kubernetes API listed, ready or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// What it answered.
    pub answer: PodAnswer,
}

/// The pods of one Deployment that reads the Inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroup {
    /// The Deployment: hot, base, search, preview.
    pub deployment: String,
    /// Whether the configuration allows that it has no pod. Elsewhere no pod means a wrong label.
    pub may_be_empty: bool,
    /// Its pods, not-Ready ones included.
    pub pods: Vec<Pod>,
}

/// What was found of the pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pods {
    /// The Kubernetes API cannot be reached from here: why.
    NoApi(String),
    /// It listed these.
    Listed(Vec<PodGroup>),
}

/// Why a gate is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateFault {
    /// A server without a rollback window.
    #[error("catalog §6.9 (gate 1): expiry_not_before is not set; expected the end of the pods' rollback window")]
    WindowUnknown,
    /// The rollback window is open.
    #[error("catalog §6.9 (gate 1): it is {now}, and the pods may be rolled back until {not_before}")]
    WindowOpen {
        /// The configured time.
        not_before: Instant,
        /// The store's time.
        now: Instant,
    },
    /// A Deployment without a pod.
    #[error("catalog §6.9 (gate 2): no pod of deployment {deployment} is listed; expected at least one")]
    NoPods {
        /// The Deployment.
        deployment: String,
    },
    /// A pod that did not answer.
    #[error("catalog §6.9 (gate 2): pod {pod} of {deployment} does not answer: {why}")]
    Unreachable {
        /// The Deployment.
        deployment: String,
        /// The pod.
        pod: String,
        /// Why.
        why: String,
    },
    /// A pod that does not tell its version, or in no known form.
    #[error(
        "catalog §6.9 (gate 2): pod {pod} of {deployment} tells no sdmxlib_version ({found}); expected {expected} or later"
    )]
    Unknown {
        /// The Deployment.
        deployment: String,
        /// The pod.
        pod: String,
        /// What it tells.
        found: String,
        /// The first version with the fallback.
        expected: String,
    },
    /// A pod of before the fallback.
    #[error("catalog §6.9 (gate 2): pod {pod} of {deployment} has sdmxlib {found}; expected {expected} or later")]
    Old {
        /// The Deployment.
        deployment: String,
        /// The pod.
        pod: String,
        /// Its version.
        found: String,
        /// The first version with the fallback.
        expected: String,
    },
}

impl GateFault {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::WindowUnknown => "gate.window_unknown",
            Self::WindowOpen { .. } => "gate.window_open",
            Self::NoPods { .. } => "gate.no_pods",
            Self::Unreachable { .. } => "gate.pod_unreachable",
            Self::Unknown { .. } => "gate.pod_version_unknown",
            Self::Old { .. } => "gate.pod_old",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::WindowUnknown => {
                "set expiry_not_before to the end of the rollback window of the last pod image from before the reader's \
                 fallback (catalog §9.2)"
                    .to_owned()
            }
            Self::WindowOpen { not_before, .. } => {
                format!("nothing has to be done: the first expiry after {not_before} goes on; or: jobctl run prune then")
            }
            Self::NoPods { deployment } => {
                format!("check the label of {deployment}; if it has no pods on purpose, allow it in the configuration")
            }
            Self::Unreachable { pod, .. } => format!("see why pod {pod} does not answer, then: jobctl run prune"),
            Self::Unknown { deployment, .. } | Self::Old { deployment, .. } => {
                format!("roll {deployment} to an image with a newer sdmxlib-rest, then: jobctl run prune")
            }
        }
    }
}

/// The verdict on the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodCheck {
    /// There is no API to ask: gate 1 alone applies, and the run says that the check was not run.
    NotRun {
        /// Why.
        why: String,
    },
    /// Every pod has the fallback.
    Passed {
        /// How many there are.
        pods: usize,
    },
    /// These do not, or nobody knows.
    Failed(Vec<GateFault>),
}

/// Both gates together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// A catalog on a disk: it has no pods.
    NotNeeded,
    /// The expiry may begin.
    Open(PodCheck),
    /// It is skipped.
    Closed {
        /// Why: both gates' faults.
        faults: Vec<GateFault>,
        /// The verdict on the pods.
        pods: PodCheck,
    },
}

/// Whether an expiry may begin on `store` at `now`, the store's time. `fallback_since` is the first sdmxlib version with
/// the reader's fallback.
#[must_use]
pub fn gates(
    store: StoreKind,
    expiry_not_before: Option<Instant>,
    now: Instant,
    pods: &Pods,
    fallback_since: &str,
) -> Gate {
    if !store.is_server() {
        return Gate::NotNeeded;
    }
    let mut faults = Vec::new();
    match expiry_not_before {
        None => faults.push(GateFault::WindowUnknown),
        Some(not_before) if now < not_before => faults.push(GateFault::WindowOpen { not_before, now }),
        Some(_) => {}
    }
    let pods = pod_check(pods, fallback_since);
    match &pods {
        PodCheck::Failed(found) => faults.extend(found.iter().cloned()),
        PodCheck::NotRun { .. } | PodCheck::Passed { .. } => {}
    }
    if faults.is_empty() { Gate::Open(pods) } else { Gate::Closed { faults, pods } }
}

/// The verdict on the pods' answers: whoever does not answer, tells no version or an unknown one counts as a failure.
#[must_use]
pub fn pod_check(pods: &Pods, fallback_since: &str) -> PodCheck {
    let groups = match pods {
        Pods::NoApi(why) => return PodCheck::NotRun { why: why.clone() },
        Pods::Listed(groups) => groups,
    };
    let mut faults = Vec::new();
    for group in groups {
        let deployment = &group.deployment;
        if group.pods.is_empty() && !group.may_be_empty {
            faults.push(GateFault::NoPods { deployment: deployment.clone() });
        }
        faults.extend(group.pods.iter().filter_map(|pod| fault_of(deployment, pod, fallback_since)));
    }
    // A list of no Deployment at all checks nothing.
    if groups.is_empty() {
        faults.push(GateFault::NoPods { deployment: "any".to_owned() });
    }
    if faults.is_empty() {
        PodCheck::Passed { pods: groups.iter().map(|group| group.pods.len()).sum() }
    } else {
        PodCheck::Failed(faults)
    }
}

fn fault_of(deployment: &str, pod: &Pod, fallback_since: &str) -> Option<GateFault> {
    let (deployment, name) = (deployment.to_owned(), pod.name.clone());
    let unknown = |found: String| {
        Some(GateFault::Unknown {
            deployment: deployment.clone(),
            pod: name.clone(),
            found,
            expected: fallback_since.to_owned(),
        })
    };
    let found = match &pod.answer {
        PodAnswer::Unreachable(why) => {
            return Some(GateFault::Unreachable { deployment, pod: name, why: why.clone() });
        }
        PodAnswer::NoField => return unknown("the field is missing".to_owned()),
        PodAnswer::Version(found) => found,
    };
    match (PythonVersion::parse(found), PythonVersion::parse(fallback_since)) {
        (Some(has), Some(wanted)) if has >= wanted => None,
        (Some(_), Some(_)) => {
            Some(GateFault::Old { deployment, pod: name, found: found.clone(), expected: fallback_since.to_owned() })
        }
        (None, _) | (_, None) => unknown(format!("{found:?}")),
    }
}

/// A Python version as far as it orders releases: `0.85.0`, `0.85.0.dev3`, `0.85rc1`, `0.85.0.post1+local`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PythonVersion {
    release: Vec<u64>,
    /// Whether it is the release itself or later: a pre-release comes before.
    is_final: bool,
}

impl PythonVersion {
    fn parse(text: &str) -> Option<Self> {
        let public = text.trim().split('+').next()?;
        let public = public.strip_prefix('v').unwrap_or(public);
        let end = public.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(public.len());
        let (release, suffix) = public.split_at(end);
        let mut release =
            release.trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
        while release.last() == Some(&0) && release.len() > 1 {
            release.pop();
        }
        let suffix = suffix.trim_start_matches(['-', '_', '.']);
        let known = ["a", "b", "rc", "c", "alpha", "beta", "pre", "dev", "post"];
        let word: String = suffix.chars().take_while(char::is_ascii_alphabetic).collect();
        if !word.is_empty() && !known.contains(&word.as_str()) || word.is_empty() && !suffix.is_empty() {
            return None;
        }
        // `post1.dev2` comes before `post1`, and after the release all the same.
        Some(Self { release, is_final: word.is_empty() || word == "post" })
    }
}

impl fmt::Display for PodCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRun { why } => write!(f, "the pod check was not run: {why}"),
            Self::Passed { pods } => write!(f, "{pods} pods have the reader's fallback"),
            Self::Failed(faults) => write!(f, "the pod check found {} faults", faults.len()),
        }
    }
}
