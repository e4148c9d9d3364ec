mod life;
mod support;
