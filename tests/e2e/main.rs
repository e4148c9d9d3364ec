//! End to end: the binary as a person runs it, on a real catalog.

mod layers;
