//! Where a product's rows and structures come from.

pub mod codr;
pub mod sdmx;
