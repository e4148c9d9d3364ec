//! The durable engine.
