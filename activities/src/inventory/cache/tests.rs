//! The index kept between processes.
