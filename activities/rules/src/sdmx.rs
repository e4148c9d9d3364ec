//! The SDMX information model, as far as a product needs it, and the text its fingerprints hash (*edition* §9).

pub mod model;
