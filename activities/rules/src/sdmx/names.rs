//! The spellings of the model's enums: a member's name in the canonical text (*edition* §9), its value in the store.

use super::model::{AttachmentLevel, CascadeSelection, InclusionMode, Usage};

macro_rules! spellings {
    ($type:ident: $($member:ident $name:literal $value:literal),+) => {
        impl $type {
            /// The member's name, as the canonical text has it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$member => $name),+ }
            }

            /// The member's value, as the store has it.
            #[must_use]
            pub fn value(self) -> &'static str {
                match self { $(Self::$member => $value),+ }
            }

            /// The member of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                [$(Self::$member),+].into_iter().find(|member| member.name() == name)
            }

            /// The member of this value.
            #[must_use]
            pub fn from_value(value: &str) -> Option<Self> {
                [$(Self::$member),+].into_iter().find(|member| member.value() == value)
            }
        }
    };
}

spellings!(Usage: Mandatory "MANDATORY" "mandatory", Optional "OPTIONAL" "optional");
spellings!(AttachmentLevel:
    DataSet "DATASET" "dataset",
    Observation "OBSERVATION" "observation",
    Series "SERIES" "series",
    Group "GROUP" "group");
spellings!(InclusionMode: Include "INCLUDE" "inclusive", Exclude "EXCLUDE" "exclusive");
spellings!(CascadeSelection:
    IncludeDescendants "INCLUDE_DESCENDANTS" "true",
    SelfOnly "SELF_ONLY" "false",
    ExcludeRoot "EXCLUDE_ROOT" "excluderoot");
