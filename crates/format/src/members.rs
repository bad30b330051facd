//! Reads a trace file of ours member by member on the calling thread, for programs that finish their own trace. The [`reader`](crate::reader)
//! uses threads, which a traced process must not have.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::files;
use crate::identity::Identity;
use crate::member::{HEADER_LEN, InflateError, MAX_TEXT, MemberHeader, inflate_member, parse_header};
use crate::reader::scan_member;
use crate::view::EventView;
use thiserror::Error;

/// A trace file could not be read.
#[derive(Debug, Error)]
pub enum MemberError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A member is damaged.
    #[error("{}: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How.
        source: InflateError,
    },
}

/// The members of a file, one after the other.
pub struct Members {
    path: PathBuf,
    file: io::BufReader<File>,
}

impl Members {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Members, MemberError> {
        let file = files::open(path).map_err(|source| MemberError::Io { path: path.to_owned(), source })?;
        Ok(Members { path: path.to_owned(), file: io::BufReader::with_capacity(256 << 10, file) })
    }

    /// The next member's header and text.
    pub fn next_text(&mut self) -> Result<Option<(MemberHeader, Vec<u8>)>, MemberError> {
        let Some((header, member)) = self.next_member()? else { return Ok(None) };
        let text = inflate_member(&member).map_err(|error| self.damaged(error))?;
        Ok(Some((header, text)))
    }

    fn next_member(&mut self) -> Result<Option<(MemberHeader, Vec<u8>)>, MemberError> {
        let mut member = vec![0; HEADER_LEN];
        let found = read_up_to(&mut self.file, &mut member).map_err(|error| self.io(error))?;
        if found == 0 {
            return Ok(None);
        }
        let header = parse_header(&member[..found]).map_err(|error| self.damaged(error.into()))?;
        // A size that no member can have must not take all memory.
        if header.size > MAX_TEXT as u64 {
            return Err(self.damaged(InflateError::TooLarge));
        }
        member.resize(header.size as usize, 0);
        let rest = read_up_to(&mut self.file, &mut member[HEADER_LEN..]).map_err(|error| self.io(error))?;
        member.truncate(HEADER_LEN + rest);
        Ok(Some((header, member)))
    }

    fn io(&self, source: io::Error) -> MemberError {
        MemberError::Io { path: self.path.clone(), source }
    }

    fn damaged(&self, source: InflateError) -> MemberError {
        MemberError::Damaged { path: self.path.clone(), source }
    }
}

fn read_up_to(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Calls `each` for every event of a file, in order.
pub fn for_each_event(path: &Path, each: &mut dyn FnMut(&EventView<'_>)) -> Result<(), MemberError> {
    let mut members = Members::open(path)?;
    while let Some((_, text)) = members.next_text()? {
        scan_member(&text, each);
    }
    Ok(())
}

/// Whose file it is; nothing when its first member does not say.
pub fn identity(path: &Path) -> Result<Option<Identity>, MemberError> {
    let mut found = None;
    if let Some((_, text)) = Members::open(path)?.next_text()? {
        scan_member(&text, &mut |event| {
            if found.is_none() {
                found = Identity::from_event(&event.to_event());
            }
        });
    }
    Ok(found)
}
