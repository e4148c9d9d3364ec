//! Where a step stands in its run, and how it is called there.

use std::fmt;

/// The place of a step in its run: what is compared when a run is resumed, and what an operator reads.
///
/// The steps outside a section count 1, 2, 3 …; a section takes one such place, and within it the steps count from 1
/// again, in each iteration anew (0 is the beginning of the section itself). So a section that starts again never moves
/// what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The place among the steps and sections of the run, from 1.
    pub top: u32,
    /// Which iteration of the section, from 1; 1 outside a section.
    pub iteration: u32,
    /// The place within the section, from 1; 0 outside a section and for the beginning of one.
    pub sub: u32,
}

impl Position {
    /// The place `top` outside a section.
    #[must_use]
    pub const fn top(top: u32) -> Self {
        Self { top, iteration: 1, sub: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.iteration, self.sub) {
            (1, 0) => write!(f, "{}", self.top),
            (1, sub) => write!(f, "{}.{sub}", self.top),
            (iteration, 0) => write!(f, "{}#{iteration}", self.top),
            (iteration, sub) => write!(f, "{}#{iteration}.{sub}", self.top),
        }
    }
}

/// The name of a step as an operator reads it: `seal` outside a section, `expire.4_delete_roots` in the first iteration
/// of the section `expire`, `expire#2.4_delete_roots` in the second.
#[must_use]
pub fn step_label(section: Option<&str>, iteration: u32, name: &str) -> String {
    match (section, iteration) {
        (None, _) => name.to_owned(),
        (Some(section), 1) => format!("{section}.{name}"),
        (Some(section), iteration) => format!("{section}#{iteration}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_as_it_is_written_in_the_journal() {
        assert_eq!(Position::top(3).to_string(), "3");
        assert_eq!(Position { top: 3, iteration: 1, sub: 2 }.to_string(), "3.2");
        assert_eq!(Position { top: 3, iteration: 2, sub: 0 }.to_string(), "3#2");
        assert_eq!(Position { top: 3, iteration: 2, sub: 5 }.to_string(), "3#2.5");
    }

    #[test]
    fn a_label_names_the_section_and_its_iteration() {
        assert_eq!(step_label(None, 1, "seal"), "seal");
        assert_eq!(step_label(Some("expire"), 1, "0_advance_current"), "expire.0_advance_current");
        assert_eq!(step_label(Some("expire"), 2, "0_advance_current"), "expire#2.0_advance_current");
    }
}
