//! Images that oh-my-pi keeps beside its sessions: `agent/blobs/<sha256>` beside `agent/sessions/<folder>/<session>`.
//!
//! A context of such a session gets their bytes in the place of the references. A reference that leads to nothing stays.

#![expect(clippy::disallowed_methods, reason = "reads image files")]

use super::sealed::Blocking;
use crate::regular::{self, Links};
use base64::{Engine, engine::general_purpose::STANDARD};
use memchr::memmem;
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// How oh-my-pi begins a reference, which is the whole text of an image's `data`.
const REFERENCE: &str = "\"blob:sha256:";

/// Hex digits of a SHA-256.
const DIGITS: usize = 64;

/// The largest image that is read, in bytes: no provider takes one of that size.
const LARGEST: u64 = 20 << 20;

/// All images of one context together, in bytes: more than any provider takes in a request.
const LARGEST_TOGETHER: usize = 100 << 20;

/// The blobs beside a session.
#[derive(Debug, Clone)]
pub struct Blobs {
    folder: PathBuf,
}

/// Reads the blobs of one context, each once.
#[derive(Default)]
pub struct Reading<'a> {
    blobs: Option<&'a Blobs>,
    found: HashMap<String, Option<String>>,
    bytes: usize,
}

impl Blobs {
    /// Those beside a session file, where there are any.
    #[must_use]
    pub fn beside(session: &Path) -> Option<Self> {
        let sessions = session.parent()?.parent()?;
        let folder = sessions.parent()?.join("blobs");
        (sessions.file_name()? == "sessions" && folder.is_dir()).then_some(Self { folder })
    }

    /// The blobs in a folder.
    #[must_use]
    pub fn of(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// An image by its hash; none where it is missing, no regular file, too large or another one.
    fn read(&self, hash: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = regular::open(&self.folder.join(hash), Links::Refused).ok()?;
        file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
        let is_it = || format!("{:x}", Sha256::digest(&bytes)) == hash;
        (bytes.len() as u64 <= LARGEST && is_it()).then_some(bytes)
    }

    /// Copies those of these images that are there to the blobs beside another session file, on disk. Images that are there
    /// already stay.
    ///
    /// # Errors
    /// When the operating system refuses a write. Images that were copied until then stay; nothing names them.
    pub fn copy_to(&self, session: &Path, hashes: &BTreeSet<String>) -> io::Result<()> {
        let sessions = session.parent().and_then(Path::parent).and_then(Path::parent);
        let Some(folder) = sessions.map(|data| data.join("blobs")).filter(|folder| *folder != self.folder) else {
            return Ok(());
        };
        for hash in hashes {
            let copy = folder.join(hash);
            if copy.symlink_metadata().is_ok() {
                continue;
            }
            let Some(bytes) = self.read(hash) else { continue };
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            regular::make_whole(&copy, |error| error, |file| file.write_all(&bytes))?;
        }
        Ok(())
    }
}

impl<'a> Reading<'a> {
    /// Reads these blobs.
    #[must_use]
    pub fn of(blobs: Option<&'a Blobs>, _: &'a Blocking) -> Self {
        Self { blobs, ..Self::default() }
    }

    /// Reads nothing: every reference stays.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether the JSON of a message may have references that can be read.
    #[must_use]
    pub fn concerns(&self, json: &str) -> bool {
        self.blobs.is_some() && memmem::find(json.as_bytes(), REFERENCE.as_bytes()).is_some()
    }

    /// The JSON of a message with images in the place of their references. Everything else keeps its bytes.
    #[must_use]
    pub fn resolve<'b>(&mut self, json: Cow<'b, str>) -> Cow<'b, str> {
        if !self.concerns(&json) {
            return json;
        }
        let mut resolved = String::new();
        let mut copied = 0;
        for at in memmem::find_iter(json.as_bytes(), REFERENCE.as_bytes()) {
            let Some(hash) = hash_at(&json, at + REFERENCE.len()).filter(|_| is_data(&json[..at])) else { continue };
            let Some(image) = self.image(hash) else { continue };
            resolved.push_str(&json[copied..=at]);
            resolved.push_str(image);
            copied = at + REFERENCE.len() + DIGITS;
        }
        resolved.push_str(&json[copied..]);
        Cow::Owned(resolved)
    }

    fn image(&mut self, hash: &str) -> Option<&str> {
        let (blobs, bytes) = (self.blobs?, &mut self.bytes);
        let read = || {
            let image = blobs
                .read(hash)
                .map(|image| STANDARD.encode(image))
                .filter(|image| *bytes + image.len() <= LARGEST_TOGETHER)?;
            *bytes += image.len();
            Some(image)
        };
        self.found.entry(hash.to_owned()).or_insert_with(read).as_deref()
    }
}

/// Adds the hashes of the images to which these lines refer.
pub fn add_references(lines: &[u8], hashes: &mut BTreeSet<String>) {
    for at in memmem::find_iter(lines, REFERENCE.as_bytes()) {
        let from = at + REFERENCE.len();
        let hash = lines.get(from..from + DIGITS).and_then(|hash| std::str::from_utf8(hash).ok());
        hashes.extend(hash.filter(|hash| is_hash(hash)).map(str::to_owned));
    }
}

fn is_hash(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The hash that stands there as the end of a text.
fn hash_at(json: &str, at: usize) -> Option<&str> {
    let hash = json.get(at..at + DIGITS)?;
    (is_hash(hash) && json[at + DIGITS..].starts_with('"')).then_some(hash)
}

/// Whether a JSON text ends with the key `data`. Inside of a text the quotes of a key are escaped.
fn is_data(json: &str) -> bool {
    json.trim_end().strip_suffix(':').is_some_and(|json| {
        let json = json.trim_end();
        json.ends_with("\"data\"") && !json.ends_with("\\\"data\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Store {
        _home: tempfile::TempDir,
        session: PathBuf,
        folder: PathBuf,
    }

    fn store() -> Store {
        let home = tempfile::tempdir().expect("a folder");
        let (folder, sessions) = (home.path().join("agent/blobs"), home.path().join("agent/sessions/-project"));
        fs::create_dir_all(&folder).expect("a folder");
        fs::create_dir_all(&sessions).expect("a folder");
        Store { session: sessions.join("s.jsonl"), folder, _home: home }
    }

    fn put(store: &Store, bytes: &[u8]) -> String {
        let hash = format!("{:x}", Sha256::digest(bytes));
        fs::write(store.folder.join(&hash), bytes).expect("a file");
        hash
    }

    fn resolve(store: &Store, json: &str) -> String {
        let blobs = Blobs::beside(&store.session);
        Reading::of(blobs.as_ref(), &Blocking::is_allowed_here()).resolve(Cow::Borrowed(json)).into_owned()
    }

    #[test]
    fn an_image_is_read_and_everything_else_keeps_its_bytes() {
        let store = store();
        let hash = put(&store, b"an image");
        let json = format!(r#"{{"content":[{{"type":"image", "data": "blob:sha256:{hash}","n":1.50}}]}}"#);
        let image = STANDARD.encode(b"an image");
        assert_eq!(resolve(&store, &json), json.replace(&format!("blob:sha256:{hash}"), &image));
        let text =
            format!(r#"{{"content":"see \"data\":\"blob:sha256:{hash}\" or this","text":"blob:sha256:{hash}"}}"#);
        assert_eq!(resolve(&store, &text), text);
    }

    #[test]
    fn a_reference_that_leads_to_no_such_image_stays() {
        let store = store();
        let json = |hash: &str| format!(r#"{{"data":"blob:sha256:{hash}"}}"#);
        let stays = |hash: &str| assert_eq!(resolve(&store, &json(hash)), json(hash));
        let missing = "0".repeat(64);
        stays(&missing);
        stays("../../secret");
        stays(&format!("../blobs/{}", &missing[..55]));
        stays(&"A".repeat(64));
        fs::write(store.folder.join(&missing), "other bytes").expect("a file");
        stays(&missing);
        let linked = format!("{:x}", Sha256::digest(b"elsewhere"));
        fs::write(store.folder.join("elsewhere"), b"elsewhere").expect("a file");
        std::os::unix::fs::symlink(store.folder.join("elsewhere"), store.folder.join(&linked)).expect("a link");
        stays(&linked);
        let large = vec![0; LARGEST as usize + 1];
        stays(&put(&store, &large));
    }

    #[test]
    fn only_oh_my_pis_folders_have_blobs() {
        let store = store();
        assert!(Blobs::beside(&store.session).is_some());
        assert!(Blobs::beside(&store.folder.join("-project/s.jsonl")).is_none());
    }
}
