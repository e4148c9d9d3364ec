//! The engine on real files.

mod straight;
mod support;
