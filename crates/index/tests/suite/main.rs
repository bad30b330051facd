//! The index over its life: built, grown, damaged, built again, and without loss. One binary: each one is a link of everything below.

mod damage;
mod golden;
mod life;
mod lossless;
mod rot;
mod window;
