//! The file of a report. An earlier report is replaced; any other file stays as it is.

use super::html::MARK;
use crate::{
    cli::print::{self, Form},
    regular::{self, Links},
};
use std::{
    fs,
    io::{self, ErrorKind, Read, Write},
    path::Path,
};

/// Bytes at the beginning of a file that tell a report.
const LOOKED_AT: u64 = 512;

/// Writes a page, which a reader sees whole or not at all. `-` is stdout.
///
/// # Errors
/// When another file has that name, or the disk does not take it: what to do next.
#[expect(clippy::disallowed_methods, reason = "a command of a person")]
pub(super) fn write(out: &Path, html: &str) -> Result<(), String> {
    if out.as_os_str() == "-" {
        let mut out = print::buffered(Form::Text);
        return match write!(out, "{html}").and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("stdout cannot be written: {error}")),
            _ => Ok(()),
        };
    }
    let shown = print::plain(&out.display().to_string());
    match is_report(out) {
        Ok(true) => {}
        Ok(false) => return Err(format!("{shown} is there already and is no report; name another file with -o")),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{shown}: {error}; name another file with -o")),
    }
    let name = out.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let partial = out.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let written = regular::make(&partial)
        .and_then(|mut file| file.write_all(html.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&partial, out));
    written.map_err(|error| {
        let _ = fs::remove_file(&partial);
        format!("{shown} cannot be written: {error}; name another file with -o")
    })
}

/// Whether a file is a report of an earlier time.
fn is_report(path: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    regular::open(path, Links::Followed)?.take(LOOKED_AT).read_to_end(&mut beginning)?;
    Ok(String::from_utf8_lossy(&beginning).contains(MARK))
}
