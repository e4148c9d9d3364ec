mod fixtures;
mod fuzz;
mod large;
pub(super) mod table;
mod vectors;
