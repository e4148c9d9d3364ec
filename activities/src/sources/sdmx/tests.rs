mod fixtures;
mod fuzz;
mod table;
mod vectors;
