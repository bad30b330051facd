//! Collectors at work, by a clock that is moved by hand: which processes they find and when, how intervals join, what is told of ends.
//!
//! Processes are real where the kernel's behaviour matters (`follow`, `ends`), and files where exact numbers do (`machine`). Nothing here
//! depends on how fast this machine is; what does is in `live.rs`.

#[path = "collector/ends.rs"]
mod ends;
#[path = "collector/follow.rs"]
mod follow;
#[path = "collector/hand.rs"]
mod hand;
#[path = "collector/machine.rs"]
mod machine;
mod support;
