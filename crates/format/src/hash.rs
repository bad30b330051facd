//! The 64-bit hash that names paths and strings in a trace (`fhash`, `FH`, `SH`, `HH`).
//!
//! It is XXH64 with seed 0 over the raw bytes, and stays so for ever: hashes are joined across files, hosts and
//! versions. Anyone can recompute it, for example with Python's `xxhash.xxh64(path).hexdigest()`. In a trace it is
//! written as 16 lower-case hexadecimal digits, most significant first.

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

/// The hash of a path, or of any other string that a trace refers to.
pub fn path_hash(bytes: &[u8]) -> u64 {
    let (blocks, mut rest) = bytes.as_chunks::<32>();
    let mut acc = if blocks.is_empty() {
        P5
    } else {
        let mut lanes = [P1.wrapping_add(P2), P2, 0, 0u64.wrapping_sub(P1)];
        for block in blocks {
            for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
                *lane = round(*lane, u64::from_le_bytes(*word));
            }
        }
        let [a, b, c, d] = lanes;
        let joined = a
            .rotate_left(1)
            .wrapping_add(b.rotate_left(7))
            .wrapping_add(c.rotate_left(12))
            .wrapping_add(d.rotate_left(18));
        lanes.iter().fold(joined, |acc, lane| (acc ^ round(0, *lane)).wrapping_mul(P1).wrapping_add(P4))
    };
    acc = acc.wrapping_add(bytes.len() as u64);

    while let Some((word, tail)) = rest.split_first_chunk::<8>() {
        acc = (acc ^ round(0, u64::from_le_bytes(*word))).rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
        rest = tail;
    }
    if let Some((word, tail)) = rest.split_first_chunk::<4>() {
        let word = u64::from(u32::from_le_bytes(*word));
        acc = (acc ^ word.wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        rest = tail;
    }
    for byte in rest {
        acc = (acc ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }

    acc ^= acc >> 33;
    acc = acc.wrapping_mul(P2);
    acc ^= acc >> 29;
    acc = acc.wrapping_mul(P3);
    acc ^ (acc >> 32)
}

#[inline]
fn round(acc: u64, input: u64) -> u64 {
    acc.wrapping_add(input.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

/// The 16 digits under which a hash stands in a trace.
#[inline]
pub fn hex(hash: u64) -> [u8; 16] {
    let mut out = [0; 16];
    out[..8].copy_from_slice(&eight_hex((hash >> 32) as u32));
    out[8..].copy_from_slice(&eight_hex(hash as u32));
    out
}

/// Eight hexadecimal digits, computed side by side in one word: the bytes are spread to every other byte, then split.
#[inline(always)]
fn eight_hex(v: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let bytes = u64::from(v.swap_bytes());
    let bytes = (bytes | bytes << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (bytes | bytes << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (bytes >> 4 & 0x000f_000f_000f_000f) | (bytes & 0x000f_000f_000f_000f) << 8;
    let letters = (digits + 6 * ONES) >> 4 & ONES;
    (digits + u64::from(b'0') * ONES + letters * u64::from(b'a' - b'0' - 10)).to_le_bytes()
}

/// The hash that those digits mean; nothing when they are not 16 lower-case hexadecimal digits.
pub fn from_hex(digits: &str) -> Option<u64> {
    let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if digits.len() != 16 || !digits.bytes().all(lower) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with the reference implementation; a change here breaks every trace ever written.
    #[test]
    fn vectors_hold_for_ever() {
        let counting: Vec<u8> = (0..=255).collect();
        for (bytes, expected) in [
            (&b""[..], 0xef46_db37_51d8_e999),
            (b"a", 0xd24e_c4f1_a98c_6e5b),
            (b"abc", 0x44bc_2cf5_ad77_0999),
            (b"/data/f.bin", 0xd28a_9db5_c7e3_fad4),
            (b"/usr/lib/x86_64-linux-gnu/libc.so.6", 0x42e1_da72_5d16_65f9),
            (&counting[..31], 0xc346_d2b5_9b4d_8ee1),
            (&counting[..32], 0xcbf5_9c51_16ff_32b4),
            (&counting[..], 0x1fac_be84_06cd_904b),
        ] {
            assert_eq!(path_hash(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn hex_both_ways() {
        for hash in [0, 1, 0x0d6c_6bbd_b835_9188, u64::MAX] {
            let digits = hex(hash);
            let digits = std::str::from_utf8(&digits).expect("hexadecimal digits are ASCII");
            assert_eq!(digits, format!("{hash:016x}"));
            assert_eq!(from_hex(digits), Some(hash));
        }
        for wrong in ["", "0d6c6bbdb835918", "0d6c6bbdb83591888", "0D6C6BBDB8359188", "+d6c6bbdb8359188"] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }
}
