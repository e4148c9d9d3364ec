#[path = "../../../../tests/support/shared.rs"]
pub(super) mod shared;
