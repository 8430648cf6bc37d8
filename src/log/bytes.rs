//! The bytes of a session file: of a file on disk, or of one in memory.

#![expect(clippy::disallowed_methods, reason = "looks at session files")]

use rustix::{fs::SeekFrom, io::Errno};
use std::{
    fmt,
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// The bytes of a session file, for reading at offsets.
#[derive(Debug, Clone)]
pub enum Bytes {
    /// Of an open file.
    File(Arc<File>),
    /// Of a file in memory.
    Memory(Shared),
    /// Of a file that lacks bytes until they are read.
    Paged(Arc<dyn Paged>),
}

/// A file whose bytes are brought when they are read.
pub trait Paged: fmt::Debug + Send + Sync {
    /// The file. It has its whole length.
    fn file(&self) -> &Arc<File>;

    /// Makes sure that it has the bytes from one offset to another.
    ///
    /// # Errors
    /// When they cannot be brought.
    fn bring(&self, from: u64, to: u64) -> io::Result<()>;
}

/// The bytes of a file in memory, which its readers and its writer share.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<RwLock<Stored>>);

#[derive(Debug, Default)]
struct Stored {
    bytes: Vec<u8>,
    /// Another file has its path.
    replaced: bool,
}

/// The file that a path leads to, compared with open bytes.
#[derive(Debug)]
pub enum Standing {
    /// The same file, of this length in bytes.
    Same(u64),
    /// Another file.
    Replaced,
    /// The path leads to no file that can be looked at.
    Gone(io::Error),
}

impl Bytes {
    /// Current length, in bytes.
    ///
    /// # Errors
    /// When the file cannot be looked at.
    pub fn length(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Memory(shared) => Ok(shared.stored().bytes.len() as u64),
            Self::Paged(pages) => Ok(pages.file().metadata()?.len()),
        }
    }

    /// Reads up to as many bytes as the buffer has. Returns their number, which is zero at the end.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => loop {
                match file.read_at(buffer, offset) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => return other,
                }
            },
            Self::Memory(shared) => {
                let stored = shared.stored();
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(stored.bytes.len());
                let there = &stored.bytes[from..];
                let length = there.len().min(buffer.len());
                buffer[..length].copy_from_slice(&there[..length]);
                Ok(length)
            }
            Self::Paged(pages) => {
                pages.bring(offset, offset.saturating_add(buffer.len() as u64))?;
                Self::File(pages.file().clone()).read_at(buffer, offset)
            }
        }
    }

    /// Reads as many bytes as the buffer has.
    ///
    /// # Errors
    /// When the file cannot be read; `UnexpectedEof` where it is shorter.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(buffer, offset),
            Self::Paged(pages) => {
                pages.bring(offset, offset.saturating_add(buffer.len() as u64))?;
                pages.file().read_exact_at(buffer, offset)
            }
            Self::Memory(_) if self.read_at(buffer, offset)? == buffer.len() => Ok(()),
            Self::Memory(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Reads the first bytes, up to a number.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn beginning(&self, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; most];
        let mut length = 0;
        while length < most {
            match self.read_at(&mut bytes[length..], length as u64)? {
                0 => break,
                more => length += more,
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Returns true where more than this number of bytes of the file lie in holes: they take no room on the disk and are
    /// read as zeros. A file system that compresses makes it true for other files too.
    #[must_use]
    pub fn is_sparse(&self, most: u64) -> bool {
        match self {
            Self::File(file) => {
                file.metadata().is_ok_and(|about| about.len().saturating_sub(about.blocks().saturating_mul(512)) > most)
            }
            Self::Memory(_) | Self::Paged(_) => false,
        }
    }

    /// The end of the hole that begins at an offset or around it, at most `to`. The offset itself where no hole is there, or
    /// where the file system does not say.
    #[must_use]
    pub fn hole_end(&self, offset: u64, to: u64) -> u64 {
        match self.sought(SeekFrom::Data(offset)) {
            Ok(data) => data.clamp(offset, to.max(offset)),
            Err(Errno::NXIO) => to.max(offset),
            Err(_) => offset,
        }
    }

    /// The beginning of the hole that ends at an offset, at least `from`. The offset itself where no hole ends there. It
    /// takes a number of steps that grows with the logarithm of the distance.
    #[must_use]
    pub fn hole_start(&self, from: u64, end: u64) -> u64 {
        let (mut low, mut high) = (from, end);
        while low < high {
            let middle = low.midpoint(high);
            if self.hole_end(middle, end) == end {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        high
    }

    /// Returns true where a hole begins between two offsets.
    #[must_use]
    pub fn has_hole(&self, from: u64, to: u64) -> bool {
        self.sought(SeekFrom::Hole(from)).is_ok_and(|hole| hole < to)
    }

    /// Looks for data or a hole. All reads and writes of a session file name their place, so its position is free.
    fn sought(&self, place: SeekFrom) -> Result<u64, Errno> {
        match self {
            Self::File(file) => rustix::fs::seek(&**file, place),
            Self::Memory(_) | Self::Paged(_) => Err(Errno::OPNOTSUPP),
        }
    }

    /// Compares the file at a path with this one.
    ///
    /// # Errors
    /// When this file cannot be looked at.
    pub fn standing(&self, path: &Path) -> io::Result<Standing> {
        let file = match self {
            Self::File(file) => file,
            Self::Paged(pages) => pages.file(),
            Self::Memory(shared) => {
                let stored = shared.stored();
                let length = stored.bytes.len() as u64;
                return Ok(if stored.replaced { Standing::Replaced } else { Standing::Same(length) });
            }
        };
        let ours = file.metadata()?;
        Ok(match fs::metadata(path) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => Standing::Same(there.len()),
            Ok(_) => Standing::Replaced,
            Err(error) => Standing::Gone(error),
        })
    }
}

impl From<File> for Bytes {
    fn from(file: File) -> Self {
        Self::File(Arc::new(file))
    }
}

impl From<Vec<u8>> for Shared {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(RwLock::new(Stored { bytes, replaced: false })))
    }
}

impl Shared {
    /// A copy of all bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.stored().bytes.clone()
    }

    /// Looks at the bytes up to a length.
    pub fn look<R>(&self, length: usize, look: impl FnOnce(&[u8]) -> R) -> R {
        let stored = self.stored();
        look(&stored.bytes[..length.min(stored.bytes.len())])
    }

    /// Number of bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.stored().bytes.len()
    }

    /// Appends bytes.
    pub fn append(&self, bytes: &[u8]) {
        self.change().bytes.extend_from_slice(bytes);
    }

    /// Cuts off the bytes after a length.
    pub fn cut(&self, length: usize) {
        self.change().bytes.truncate(length);
    }

    /// Gives the path of the file to another one. Readers of this one keep its bytes.
    pub fn replace(&self) {
        self.change().replaced = true;
    }

    fn stored(&self) -> RwLockReadGuard<'_, Stored> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Stored> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn holes_are_found_from_both_sides() {
        const BLOCK: u64 = 64 << 10;
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![b'x'; BLOCK as usize]).expect("it is written");
        file.write_all_at(&vec![b'y'; BLOCK as usize], 100 * BLOCK).expect("it is written");
        file.set_len(1 << 40).expect("a hole");
        let file = Bytes::from(file);
        let holes = [(BLOCK, 100 * BLOCK), (101 * BLOCK, 1 << 40)];
        for (start, end) in holes {
            assert_eq!(file.hole_end(start, end), end);
            assert_eq!(file.hole_end(start, end - 7), end - 7);
            assert_eq!(file.hole_start(BLOCK + 5, end), start.max(BLOCK + 5));
            assert!(file.has_hole(0, end) && file.has_hole(start, start + 1));
        }
        assert_eq!((file.hole_end(0, BLOCK), file.hole_start(0, BLOCK)), (0, BLOCK));
        assert!(!file.has_hole(0, BLOCK));
        assert!(file.is_sparse(1 << 39) && !file.is_sparse(1 << 40));
        let memory = Bytes::Memory(vec![0; 100].into());
        assert_eq!((memory.hole_end(1, 9), memory.hole_start(1, 9), memory.has_hole(1, 9)), (1, 9, false));
    }

    #[test]
    fn a_file_and_memory_are_read_alike() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"0123456789").expect("it is written");
        let read = |bytes: &Bytes, length: usize, offset: u64| {
            let mut some = vec![0; length];
            let got = bytes.read_at(&mut some, offset).expect("it is read");
            let mut whole = vec![0; length];
            let exact = bytes.read_exact_at(&mut whole, offset).map_err(|error| error.kind());
            (some[..got].to_vec(), exact.map(|()| whole))
        };
        let (file, memory) = (Bytes::from(file), Bytes::Memory(b"0123456789".to_vec().into()));
        for (length, offset) in [(3, 0), (3, 8), (10, 0), (11, 0), (0, 10), (1, 10), (1, 11), (1, 1 << 40)] {
            assert_eq!(read(&file, length, offset), read(&memory, length, offset), "{length} at {offset}");
        }
        for most in [0, 4, 10, 11] {
            assert_eq!(file.beginning(most).expect("read"), memory.beginning(most).expect("read"));
        }
        assert_eq!((file.length().expect("a length"), memory.length().expect("a length")), (10, 10));
    }
}
