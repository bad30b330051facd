//! Records as they come out of the ring: `struct record` of `bpf/record.h`, taken apart without `unsafe`.

/// Size of the fixed part.
const FIXED: usize = 136;

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    Call,
    Block,
    Uring,
    Fault,
    Fork,
    Exec,
    Exit,
}

/// An open file and its inode by their addresses in the kernel, which are the same for all descriptors and processes that share
/// the file. Addresses are used again once a file is closed; that both are used again together is not expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Identity {
    pub(super) file: u64,
    pub(super) inode: u64,
}

impl Identity {
    pub(super) fn known(self) -> Option<Identity> {
        (self.file != 0 && self.inode != 0).then_some(self)
    }
}

/// One record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) kind: RecordKind,
    pub(super) number: u16,
    pub(super) device: u32,
    pub(super) tgid: u32,
    pub(super) tid: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) result: i64,
    pub(super) args: [u64; 6],
    pub(super) first: Identity,
    pub(super) second: Identity,
    pub(super) missed: u64,
    pub(super) path: &'a [u8],
    pub(super) second_path: &'a [u8],
}

/// Takes a record apart; nothing where it is none.
pub(super) fn parse(bytes: &[u8]) -> Option<Record<'_>> {
    let (fixed, paths) = bytes.split_first_chunk::<FIXED>()?;
    let kind = match fixed[0] {
        1 => RecordKind::Call,
        2 => RecordKind::Block,
        3 => RecordKind::Uring,
        4 => RecordKind::Fault,
        5 => RecordKind::Fork,
        6 => RecordKind::Exec,
        7 => RecordKind::Exit,
        _ => return None,
    };
    let short = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
    let word = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let (path_len, second_len) = (usize::from(short(128)), usize::from(short(130)));
    let path = paths.get(..path_len)?;
    let second_path = paths.get(path_len..path_len + second_len)?;
    Some(Record {
        kind,
        number: short(2),
        device: word(4),
        tgid: word(8),
        tid: word(12),
        start: long(16),
        end: long(24),
        result: long(32) as i64,
        args: std::array::from_fn(|place| long(40 + 8 * place)),
        first: Identity { file: long(88), inode: long(96) },
        second: Identity { file: long(104), inode: long(112) },
        missed: long(120),
        path: without_zero(path),
        second_path: without_zero(second_path),
    })
}

fn without_zero(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\0").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_the_kernel_side_puts_them() {
        let mut bytes = [0u8; FIXED].to_vec();
        bytes[0] = 1;
        bytes[2] = 7;
        bytes[8..12].copy_from_slice(&11u32.to_le_bytes());
        bytes[32..40].copy_from_slice(&(-2i64).to_le_bytes());
        bytes[80..88].copy_from_slice(&6u64.to_le_bytes());
        bytes[112..120].copy_from_slice(&u64::MAX.to_le_bytes());
        (bytes[128], bytes[130]) = (3, 2);
        bytes.extend_from_slice(b"ab\0c\0rest");
        let record = parse(&bytes).expect("whole");
        assert_eq!((record.kind, record.number, record.tgid, record.result), (RecordKind::Call, 7, 11, -2));
        assert_eq!((record.args[5], record.second.inode), (6, u64::MAX));
        assert_eq!((record.path, record.second_path), (&b"ab"[..], &b"c"[..]));
    }

    #[test]
    fn what_is_no_record_is_left() {
        assert!(parse(&[1; FIXED - 1]).is_none());
        assert!(parse(&[0; FIXED]).is_none());
        let mut longer_than_it_is = [0u8; FIXED];
        (longer_than_it_is[0], longer_than_it_is[128]) = (1, 1);
        assert!(parse(&longer_than_it_is).is_none());
    }
}
