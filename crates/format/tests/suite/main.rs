//! Reader and writer over whole files: dialects, damage, round trips, generated traces. One binary: each one is a link of everything below.

mod damage;
mod dialects;
mod generated_trace;
mod round_trip;
