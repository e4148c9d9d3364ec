mod cases;
mod crashes;
mod decisions;
mod model;
mod properties;
mod restores;
mod verifying;
