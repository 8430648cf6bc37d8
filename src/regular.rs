//! Opens regular files and nothing else. A FIFO, a device, a folder or a socket in the place of a file is an error; no
//! open waits for the other end of a FIFO, no read is longer than its bound, and no write goes through a symbolic link
//! unless the caller asks for that.

#![expect(clippy::disallowed_methods, reason = "opens files")]

use rustix::fs::OFlags;
use std::{
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// `errno` of `ELOOP`, `EMLINK` (FreeBSD): the last part of a path is a symbolic link and `O_NOFOLLOW` was given.
const LINK_REFUSED: [i32; 2] = [rustix::io::Errno::LOOP.raw_os_error(), rustix::io::Errno::MLINK.raw_os_error()];

/// The treatment of a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The file that the link leads to is opened.
    Followed,
    /// A link is an error.
    Refused,
}

/// Opens a regular file for reading.
///
/// # Errors
/// Errors of the operating system, and an error without an errno where the path leads to anything but a regular file.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path, links)
}

/// Opens a regular file that is there for reading and appending. The path must not be a link.
///
/// # Errors
/// The same as for `open`.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true).append(true), path, Links::Refused)
}

/// Opens a regular file for reading and writing, and makes it with mode 0600 where there is none. The path must not be
/// a link, and nothing of the content changes.
///
/// # Errors
/// The same as for `open`.
pub fn open_or_make(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600), path, Links::Refused)
}

/// Makes a file that is not there yet, mode 0600, for reading and appending. A dangling link counts as a file.
///
/// # Errors
/// Those of the operating system; `AlreadyExists` where the name is taken.
pub fn make(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

/// Reads a regular file of at most `most` bytes. Links are followed.
///
/// # Errors
/// The same as for `open`; `FileTooLarge` where the file has more bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, Links::Followed)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// Replaces a file by these bytes, all or nothing, with mode 0600. A link in its place is replaced, not followed.
///
/// # Errors
/// Errors of the operating system. The old file is then unchanged.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = fresh_beside(path);
    let written = make(&fresh).and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&fresh, path));
    written.inspect_err(|_| drop(fs::remove_file(&fresh)))
}

/// Makes a file of what `write` writes, all or nothing, with mode 0600. Its bytes are on disk before it takes its name. A
/// file in its place is replaced.
///
/// # Errors
/// Those of `write`, and errors of the operating system, wrapped by `failed`. Nothing is left then.
pub fn make_whole<E>(
    path: &Path,
    failed: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    make_whole_from(&fresh_beside(path), path, failed, write, || Ok(()))
}

/// The same in a folder that need not be there: the file is written to the folder above it. `make_folder` is called after
/// the bytes are on disk, so that a file which cannot be written leaves no folder.
///
/// # Errors
/// The same, and those of `make_folder`.
pub fn make_whole_with_folder<E>(
    path: &Path,
    failed: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut File) -> Result<(), E>,
    make_folder: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let fresh = fresh_beside(path);
    let above = path.parent().and_then(Path::parent).zip(fresh.file_name()).map(|(above, name)| above.join(name));
    make_whole_from(&above.unwrap_or(fresh), path, failed, write, make_folder)
}

fn make_whole_from<E>(
    fresh: &Path,
    path: &Path,
    failed: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut File) -> Result<(), E>,
    make_folder: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let mut file = make(fresh).map_err(&failed)?;
    let written = write(&mut file)
        .and_then(|()| file.sync_all().map_err(&failed))
        .and_then(|()| make_folder())
        .and_then(|()| fs::rename(fresh, path).map_err(&failed));
    written.inspect_err(|_| drop(fs::remove_file(fresh)))
}

/// Opens a folder and locks it against other holders, in this process and in others, until the file is dropped. It waits two
/// seconds. A file system without locks gives a file that keeps nobody out.
///
/// # Errors
/// Errors of the operating system, and `WouldBlock` where another holder keeps the lock.
pub fn hold_folder(folder: &Path) -> io::Result<File> {
    // A change takes some milliseconds. The lock of the system itself waits without a limit.
    const TRIES: u32 = 200;
    const PAUSE: Duration = Duration::from_millis(10);
    let file = File::open(folder)?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process is changing a file there; try again"))
}

/// Makes sure of a new name in a folder: it is on disk when its folder is. Not every file system can do it; the bytes of the
/// file are safe anyway.
pub fn sync_folder(folder: &Path) {
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::debug!(%error, "the folder could not be synced");
    }
}

/// A name for a file that is not complete yet.
fn fresh_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", uuid::Uuid::new_v4().simple()))
}

/// Whether this is the name of a file that is not complete yet, and that becomes one with this ending.
#[must_use]
pub fn is_fresh_name(name: &str, ending: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
    inner.and_then(|inner| inner.rsplit_once('.')).is_some_and(|(name, id)| {
        name.ends_with(ending) && id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Makes a file of the first of these names that is free.
///
/// # Errors
/// Those of the operating system but `AlreadyExists`.
pub fn make_first_free(names: impl IntoIterator<Item = PathBuf>) -> io::Result<(PathBuf, File)> {
    for path in names {
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (path, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns true where the path, without following a link, leads to the file that is open.
#[must_use]
pub fn is_at(file: &File, path: &Path) -> bool {
    let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    matches!((file.metadata(), path.symlink_metadata()), (Ok(a), Ok(b)) if same(&a, &b))
}

fn open_with(options: &mut OpenOptions, path: &Path, links: Links) -> io::Result<File> {
    let about = match links {
        Links::Followed => path.metadata(),
        Links::Refused => path.symlink_metadata(),
    };
    // Some devices have an effect when they are opened. The file may be replaced after this, so it is checked again.
    if let Ok(about) = about {
        is_regular(&about)?;
    }
    open_and_check(options, path, links)
}

/// Opens a file without an effect on a FIFO or a terminal, and checks what was opened.
fn open_and_check(options: &mut OpenOptions, path: &Path, links: Links) -> io::Result<File> {
    let flags =
        OFlags::NONBLOCK | OFlags::NOCTTY | if links == Links::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = options.custom_flags(flags).open(path).map_err(|error| match error.raw_os_error() {
        Some(errno) if links == Links::Refused && LINK_REFUSED.contains(&errno) => link(),
        _ => error,
    })?;
    is_regular(&file.metadata()?)?;
    Ok(file)
}

fn is_regular(about: &Metadata) -> io::Result<()> {
    let kind = about.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_symlink() {
        return Err(link());
    }
    let what = if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(io::Error::other(format!("it is {what}, not a regular file")))
}

fn link() -> io::Error {
    io::Error::other("it is a symbolic link, not a regular file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn fifo(path: &Path) {
        assert!(std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    }

    #[test]
    fn only_regular_files_are_opened_and_no_fifo_is_waited_for() {
        let home = tempfile::tempdir().expect("a folder");
        let at = |name: &str| home.path().join(name);
        fs::write(at("file"), "text").expect("a file");
        fifo(&at("fifo"));
        symlink(at("file"), at("link")).expect("a link");
        symlink(at("fifo"), at("link-to-fifo")).expect("a link");
        symlink("/dev/zero", at("link-to-device")).expect("a link");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
        for name in ["fifo", "link-to-fifo", "link-to-device", "socket", "."] {
            assert!(open(&at(name), Links::Followed).is_err(), "{name}");
            assert!(open_to_append(&at(name)).is_err(), "{name}");
            assert!(open_or_make(&at(name)).is_err(), "{name}");
        }
        assert!(open(&at("link"), Links::Followed).is_ok());
        let refused = open(&at("link"), Links::Refused).expect_err("a link is refused");
        assert_eq!(refused.to_string(), "it is a symbolic link, not a regular file");
        assert!(open_to_append(&at("link")).is_err() && open_or_make(&at("link")).is_err());
        assert!(open_to_append(&at("none")).is_err());
    }

    /// A file may be replaced between the look at it and its opening.
    #[test]
    fn a_file_that_was_replaced_before_it_was_opened_is_refused() {
        let home = tempfile::tempdir().expect("a folder");
        let at = |name: &str| home.path().join(name);
        fs::write(at("file"), "text").expect("a file");
        fifo(&at("fifo"));
        symlink(at("file"), at("link")).expect("a link");
        symlink(at("loop"), at("loop")).expect("a link");
        let opened = |name: &str, links| open_and_check(OpenOptions::new().read(true), &at(name), links);
        assert!(opened("file", Links::Refused).is_ok() && opened("link", Links::Followed).is_ok());
        for (name, links, told) in [
            ("link", Links::Refused, "it is a symbolic link, not a regular file"),
            ("fifo", Links::Refused, "it is a FIFO, not a regular file"),
            ("fifo", Links::Followed, "it is a FIFO, not a regular file"),
        ] {
            assert_eq!(opened(name, links).expect_err("refused").to_string(), told);
        }
        let errno = |name: &str, links| opened(name, links).expect_err("refused").raw_os_error();
        assert_eq!(errno("loop", Links::Followed), Some(rustix::io::Errno::LOOP.raw_os_error()));
        assert_eq!(errno("none", Links::Refused), Some(rustix::io::Errno::NOENT.raw_os_error()));
    }

    #[test]
    fn a_path_leads_to_the_open_file_or_to_another() {
        let home = tempfile::tempdir().expect("a folder");
        let at = |name: &str| home.path().join(name);
        for name in ["file", "other"] {
            fs::write(at(name), "text").expect("a file");
        }
        symlink(at("file"), at("link")).expect("a link");
        let file = open(&at("file"), Links::Refused).expect("a file");
        for (name, expected) in [("file", true), ("other", false), ("link", false), ("none", false)] {
            assert_eq!(is_at(&file, &at(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_read_is_bounded() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("sparse");
        fs::File::create(&path).and_then(|file| file.set_len(6 << 30)).expect("a sparse file");
        assert_eq!(read(&path, 100).expect_err("too large").kind(), io::ErrorKind::FileTooLarge);
        fs::write(&path, [b'x'; 100]).expect("a file");
        assert_eq!(read(&path, 100).expect("small enough").len(), 100);
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_link_is_not_followed() {
        let home = tempfile::tempdir().expect("a folder");
        let (theirs, ours) = (home.path().join("theirs"), home.path().join("ours"));
        fs::write(&theirs, "precious").and_then(|()| symlink(&theirs, &ours)).expect("a link");
        replace(&ours, b"new").expect("replaced");
        assert_eq!(fs::read_to_string(&theirs).expect("a file"), "precious");
        assert_eq!(fs::read_to_string(&ours).expect("a file"), "new");
        let about = ours.symlink_metadata().expect("a file");
        assert!(about.is_file() && about.permissions().mode() & 0o777 == 0o600);
        assert_eq!(fs::read_dir(home.path()).expect("a folder").count(), 2, "nothing else is left");
    }

    #[test]
    fn a_dangling_link_is_a_name_that_is_taken() {
        let home = tempfile::tempdir().expect("a folder");
        let names = ["a", "b"].map(|name| home.path().join(name));
        symlink(home.path().join("elsewhere"), &names[0]).expect("a link");
        let (made, _) = make_first_free(names.clone()).expect("made");
        assert_eq!(made, names[1]);
        assert!(!home.path().join("elsewhere").exists());
        assert_eq!(make_first_free(names).expect_err("taken").kind(), io::ErrorKind::AlreadyExists);
        let nowhere = make_first_free([home.path().join("none/a")]).expect_err("no folder");
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    }
}
