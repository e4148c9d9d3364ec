mod fixtures;
mod fuzz;
mod large;
mod table;
mod vectors;
