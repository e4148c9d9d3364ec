use super::*;

mod vectors;
