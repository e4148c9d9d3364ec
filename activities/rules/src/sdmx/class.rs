//! The macros by which [`super::model`] declares its classes: a struct, how the canonical text spells it, and how it is
//! read back, from one list of fields, so that none of the three can forget a field.

/// The keys of a class in the order of the canonical text: by code point.
pub(super) const fn key_order<const N: usize>(keys: &[&str]) -> [usize; N] {
    let mut order = [0; N];
    let mut placed = 0;
    while placed < N {
        // Insertion: a constant function may not call a sort.
        let mut at = placed;
        while at > 0 && before(keys[placed], keys[order[at - 1]]) {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = placed;
        placed += 1;
    }
    order
}

const fn before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

/// The key of a field in the canonical text: its name, or the one that is given.
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

/// Declares a class that is no maintainable artefact.
macro_rules! class {
    (
        $(#[$meta:meta])*
        $name:ident $(= $class:literal)? {
            $( $(#[$field_meta:meta])* $field:ident $(as $key:literal)? : $type:ty ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
        pub struct $name { $( $(#[$field_meta])* pub $field: $type ),* }

        impl $crate::sdmx::canonical::Spelt for $name {
            fn spell(&self, to: &mut $crate::sdmx::canonical::Encoder<'_>) {
                const KEYS: &[&str] = &[$( key!($field $($key)?) ),*];
                const ORDER: [usize; KEYS.len()] = $crate::sdmx::class::key_order(KEYS);
                let fields: &[&dyn $crate::sdmx::canonical::Spelt] = &[$( &self.$field ),*];
                to.open(class_name!($name $($class)?));
                for at in ORDER {
                    to.field(KEYS[at], fields[at]);
                }
                to.close();
            }
        }

        impl $crate::sdmx::decode::Unspelt for $name {
            fn read(place: &str, value: serde_json::Value) -> $crate::sdmx::decode::Decoded<Self> {
                let mut fields = $crate::sdmx::decode::Fields::of(value, class_name!($name $($class)?), place)?;
                let read = Self { $( $field: fields.field(key!($field $($key)?))? ),* };
                fields.done()?;
                Ok(read)
            }
        }
    };
}

/// The class name of the canonical text: the struct's, or the one that is given.
macro_rules! class_name {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $class:literal) => {
        $class
    };
}

/// Declares a maintainable class: what every artefact has is in `common`, but for the fields that the class `lacks`.
macro_rules! maintainable {
    (
        $(#[$meta:meta])*
        $name:ident lacks [$( $lacks:literal ),*] {
            $( $(#[$field_meta:meta])* $field:ident $(as $key:literal)? : $type:ty ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        #[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
        pub struct $name {
            /// What every maintainable artefact has.
            pub common: $crate::sdmx::model::Maintained,
            $( $(#[$field_meta])* pub $field: $type ),*
        }

        impl $crate::sdmx::model::Maintainable for $name {
            const LACKS: &'static [&'static str] = &[$( $lacks ),*];

            fn own(&self) -> Vec<(&'static str, &dyn $crate::sdmx::canonical::Spelt)> {
                vec![$( (key!($field $($key)?), &self.$field as &dyn $crate::sdmx::canonical::Spelt) ),*]
            }

            fn read(fields: &mut $crate::sdmx::decode::Fields) -> $crate::sdmx::decode::Decoded<Self> {
                Ok(Self {
                    common: $crate::sdmx::model::Maintained::read(fields, Self::LACKS)?,
                    $( $field: fields.field(key!($field $($key)?))? ),*
                })
            }
        }
    };
}

/// Declares an enum: a member's name is what the canonical text has, its value what the store and the messages have.
macro_rules! members {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$member_meta:meta])* $member:ident $spelt:literal $value:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the members are those of the SDMX information model, under their own names")]
        pub enum $name { $( $(#[$member_meta])* $member ),+ }

        impl $name {
            /// The member's name, as the canonical text has it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $( Self::$member => $spelt ),+ }
            }

            /// The member's value, as the store and the messages have it.
            #[must_use]
            pub fn value(self) -> &'static str {
                match self { $( Self::$member => $value ),+ }
            }

            /// The member of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                [$( Self::$member ),+].into_iter().find(|member| member.name() == name)
            }

            /// The member of this value.
            #[must_use]
            pub fn from_value(value: &str) -> Option<Self> {
                [$( Self::$member ),+].into_iter().find(|member| member.value() == value)
            }
        }

        impl $crate::sdmx::canonical::Spelt for $name {
            fn spell(&self, to: &mut $crate::sdmx::canonical::Encoder<'_>) {
                to.string(self.name());
            }
        }

        impl $crate::sdmx::decode::Unspelt for $name {
            fn read(place: &str, value: serde_json::Value) -> $crate::sdmx::decode::Decoded<Self> {
                match value.as_str().and_then(Self::from_name) {
                    Some(member) => Ok(member),
                    None => $crate::sdmx::decode::kind(
                        place.to_owned(),
                        concat!("one of" $( , " ", $spelt )+),
                        &value,
                    ),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_are_ordered_by_code_point() {
        const ORDER: [usize; 5] = super::key_order(&["b", "a_b", "a", "ab", "B"]);
        assert_eq!(ORDER, [4, 2, 1, 3, 0]);
    }
}
