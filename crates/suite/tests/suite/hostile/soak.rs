//! The soak itself works: a few rounds of what `make soak` does by the thousand.

use std::process::Command;

use weftline_testkit::product::product;

#[test]
fn ten_kills_lose_nothing() {
    let soak =
        Command::new(env!("CARGO_BIN_EXE_soak")).env("WEFT_SOAK_KILLS", "10").env("WEFT_BIN", product()).output();
    let soak = soak.expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&soak.stdout), String::from_utf8_lossy(&soak.stderr));
    assert!(soak.status.success() && out.contains("| **10** |"), "{out}\n{err}");
}
