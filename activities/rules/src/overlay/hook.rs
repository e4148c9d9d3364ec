//! Merge hooks: what `set` makes of the annotations that it drops (*edition* §5.3).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::sdmx::model::Annotation;

/// What the token's text uses itself.
const RESERVED: [char; 5] = [',', '=', '@', ':', '\n'];

/// Which hook, in which version. A hook that changes what it returns changes its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HookId {
    package: String,
    name: String,
    version: String,
}

/// A hook, or a type with a hook, that the effective token cannot spell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "edition §5.4: {found:?} is no hook: expected TYPE=PACKAGE:NAME@VERSION, such as NOTE=acme-labels:notes@1.2, no part \
     of it empty or with one of , = @ : or a newline"
)]
pub struct BadHook {
    /// The text.
    pub found: String,
}

fn is_part(text: &str) -> bool {
    !text.is_empty() && !text.contains(RESERVED)
}

impl HookId {
    /// The hook `name` of `package` at `version`.
    ///
    /// # Errors
    /// [`BadHook`] when a part is empty or holds what the token's text uses itself.
    pub fn new(package: &str, name: &str, version: &str) -> Result<Self, BadHook> {
        if [package, name, version].into_iter().all(is_part) {
            Ok(Self { package: package.to_owned(), name: name.to_owned(), version: version.to_owned() })
        } else {
            Err(BadHook { found: format!("{package}:{name}@{version}") })
        }
    }
}

impl fmt::Display for HookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.package, self.name, self.version)
    }
}

/// Which annotation types have a hook, and which. Its text is the line of the effective token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hooks(BTreeMap<String, HookId>);

impl Hooks {
    /// No type has a hook.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Gives `annotation_type` the hook `id`; the last one given counts.
    ///
    /// # Errors
    /// [`BadHook`] when the type is empty or holds what the token's text uses itself.
    pub fn with(mut self, annotation_type: &str, id: HookId) -> Result<Self, BadHook> {
        if !is_part(annotation_type) {
            return Err(BadHook { found: format!("{annotation_type}={id}") });
        }
        self.0.insert(annotation_type.to_owned(), id);
        Ok(self)
    }

    /// These and `others`; where both have a hook for a type, that of `others` counts.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Each type with its hook, sorted by type.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HookId)> {
        self.0.iter().map(|(annotation_type, id)| (annotation_type.as_str(), id))
    }
}

impl fmt::Display for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("default");
        }
        for (at, (annotation_type, id)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{annotation_type}={id}")?;
        }
        Ok(())
    }
}

/// `TYPE=PACKAGE:NAME@VERSION`, as the command line has it.
impl FromStr for Hooks {
    type Err = BadHook;

    fn from_str(text: &str) -> Result<Self, BadHook> {
        let bad = || BadHook { found: text.to_owned() };
        let (annotation_type, hook) = text.split_once('=').ok_or_else(bad)?;
        let (package, rest) = hook.split_once(':').ok_or_else(bad)?;
        let (name, version) = rest.split_once('@').ok_or_else(bad)?;
        let id = HookId::new(package, name, version).map_err(|_| bad())?;
        Self::none().with(annotation_type, id).map_err(|_| bad())
    }
}

/// A hook at work: from the dropped annotations, in their order, and the new one, the annotations that are appended.
pub struct MergeHook<'f> {
    /// Which hook.
    pub id: HookId,
    /// What it does.
    pub merge: &'f MergeFunction<'f>,
}

/// What a hook does.
pub type MergeFunction<'f> = dyn Fn(&[Annotation], Annotation) -> Vec<Annotation> + 'f;

impl fmt::Debug for MergeHook<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeHook").field("id", &self.id).finish_non_exhaustive()
    }
}
