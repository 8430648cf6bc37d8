//! Writes a session as a file for another program or a person.

#![expect(clippy::disallowed_methods, reason = "writes an export")]

use crate::{
    conversation::{
        entry::{Body, Entry, Header, VERSION},
        message::{Block, Message},
    },
    log::{error::StoreError, header::header_line, history::library::Wanted, names, sealed::Blocking},
    protocol::{
        errors::Failure,
        types::{ExportAnswer, ExportFormat, ExportParams},
    },
    regular,
    session::state::State,
};
use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// An export that is about to be written.
pub struct Export {
    path: PathBuf,
    header: Header,
    title: Option<String>,
    format: ExportFormat,
    entries: Wanted,
}

impl Export {
    /// An export of these: `path` from root to leaf, `whole` every entry.
    ///
    /// # Errors
    /// When the params name no file.
    pub fn new(state: &State, params: ExportParams, path: Wanted, whole: Wanted) -> Result<Self, Failure> {
        if params.path.is_empty() {
            return Err(Failure::params("path", "the path is empty; name the file to write"));
        }
        let header = Header { version: VERSION, ..state.header().clone() };
        Ok(Self {
            path: Path::new(&header.cwd).join(&params.path),
            header,
            title: state.title(),
            format: params.format,
            entries: match params.format {
                ExportFormat::Jsonl => whole,
                ExportFormat::Markdown => path,
            },
        })
    }

    /// Writes it.
    ///
    /// # Errors
    /// When the file is there already or cannot be written.
    pub fn run(self, blocking: &Blocking) -> Result<ExportAnswer, Failure> {
        let Self { path, header, title, format, entries } = self;
        let failed = |what: &'static str| {
            let path = path.clone();
            move |error| Failure::from(StoreError::io(&path, what)(error))
        };
        let taken = "cannot be made; give the path of a file that is not there yet, in a folder that is";
        // A link counts as a file that is there, wherever it leads.
        if path.symlink_metadata().is_ok() {
            return Err(failed(taken)(io::ErrorKind::AlreadyExists.into()));
        }
        // Under another name until it is whole: half an export is worse than none.
        let made = regular::make_first_free(names::names_beside(&path, "new"));
        let (new, file) = made.map_err(failed(taken))?;
        let mut out = BufWriter::new(file);
        let written = || -> Result<(), Failure> {
            let io = failed("could not be written; it is incomplete");
            match format {
                ExportFormat::Jsonl => writeln!(out, "{}", header_line(&header)),
                ExportFormat::Markdown => front(&mut out, &header, title.as_deref()),
            }
            .map_err(io)?;
            for entry in entries.read(blocking) {
                let entry = entry?;
                let io = failed("could not be written; it is incomplete");
                match format {
                    ExportFormat::Jsonl => writeln!(out, "{}", entry.line_with_parent()),
                    ExportFormat::Markdown => section(&mut out, &entry),
                }
                .map_err(io)?;
            }
            let file = out.into_inner().map_err(|error| failed("could not be written")(error.into_error()))?;
            file.sync_all().map_err(failed("could not be written"))
        };
        // A link, because a rename would replace what came there meanwhile.
        let done = written().and_then(|()| {
            let linked = fs::hard_link(&new, &path);
            // Not every file system has links.
            linked
                .or_else(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => Err(error),
                    _ => fs::rename(&new, &path),
                })
                .map_err(failed(taken))
        });
        let _ = fs::remove_file(&new);
        done?;
        Ok(ExportAnswer { path: path.display().to_string() })
    }
}

fn front(out: &mut impl Write, header: &Header, title: Option<&str>) -> io::Result<()> {
    writeln!(out, "# {}\n", title.unwrap_or("A session"))?;
    writeln!(out, "{} · {} · session {}\n", header.cwd, header.timestamp, header.id)
}

/// An entry as a person reads it; nothing for what only programs care about.
fn section(out: &mut impl Write, entry: &Entry) -> io::Result<()> {
    match &entry.body {
        Body::Compaction(compaction) => {
            writeln!(out, "---\n\n_Condensed here. The summary from then on:_\n")?;
            quote(out, &compaction.summary)
        }
        Body::BranchSummary(branch) => {
            writeln!(out, "---\n\n_Summary of a branch that was left:_\n")?;
            quote(out, &branch.summary)
        }
        Body::CustomMessage(custom) => {
            writeln!(out, "## {}\n", custom.custom_type)?;
            blocks(out, &custom.content)
        }
        Body::ModelChange { provider, model } => writeln!(out, "_Model: {provider}/{model}_\n"),
        Body::Message(_) => entry.message().map_or(Ok(()), |it| message(out, it)),
        _ => Ok(()),
    }
}

fn message(out: &mut impl Write, message: &Message) -> io::Result<()> {
    let heading = match message {
        Message::User(_) => "User",
        Message::Developer(_) => "Developer",
        Message::System(_) => "System",
        Message::Assistant(_) => "Assistant",
        Message::Custom(_) => "Note",
        Message::Summary(text) => return quote(out, text),
        Message::ToolResult(result) => {
            writeln!(out, "**Result of {}**\n", if result.tool.is_empty() { "a tool" } else { &result.tool })?;
            return code(out, "", &crate::conversation::message::text_of(&result.content));
        }
        Message::Execution(run) => {
            code(out, "sh", &run.command)?;
            return code(out, "", &run.output);
        }
    };
    writeln!(out, "## {heading}\n")?;
    blocks(out, message.blocks())
}

fn blocks(out: &mut impl Write, blocks: &[Block]) -> io::Result<()> {
    for block in blocks {
        match block {
            Block::Text(text) => writeln!(out, "{}\n", text.trim_end())?,
            Block::Thinking { text, .. } if text.is_empty() => {}
            Block::Thinking { text, .. } => quote(out, text)?,
            Block::ToolCall(call) => {
                writeln!(out, "**Calls {}**\n", call.name)?;
                code(out, "json", &call.arguments)?;
            }
            Block::Image(image) => writeln!(out, "_An image ({})._\n", image.mime)?,
            Block::Other(_) => {}
        }
    }
    Ok(())
}

fn quote(out: &mut impl Write, text: &str) -> io::Result<()> {
    for line in text.trim_end().lines() {
        writeln!(out, "> {line}")?;
    }
    writeln!(out)
}

/// A block of code whose fence is longer than any inside it.
fn code(out: &mut impl Write, language: &str, text: &str) -> io::Result<()> {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    writeln!(out, "{fence}{language}\n{}\n{fence}\n", text.trim_end())
}
