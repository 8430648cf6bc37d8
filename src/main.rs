//! The command line.

use abridged::{
    agents::Agent,
    cli::{self, model::Named},
    ids::ModelRef,
    provider::Api,
    wire::transport::Framing,
};
use clap::{
    Args, CommandFactory, Parser, Subcommand, ValueEnum,
    builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser},
    error::ContextValue,
};
use std::{io::IsTerminal, num::NonZeroUsize, path::PathBuf, process::ExitCode};
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

/// Keeps the sessions of LLM agents inside the model's window, over JSON-RPC.
#[derive(Parser)]
#[command(name = "abridged", version, max_term_width = 80)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Level of the log on stderr: error, warn, info, debug, trace.
    #[arg(long, global = true, env = "ABRIDGED_LOG", hide_env = true, default_value = "warn", hide_default_value = true, value_name = "LEVEL", value_parser = level)]
    log: tracing::Level,
}

#[derive(Subcommand)]
enum Command {
    /// Serve JSON-RPC on stdin and stdout.
    ///
    /// The default without a terminal. The log has sizes, times and codes, no payloads.
    Serve {
        /// How frames stand in the stream.
        #[arg(long, value_enum, default_value_t = FramingArgument::Auto)]
        framing: FramingArgument,
        /// Record the sessions into a new file, from which they can be replayed. It holds whole conversations and no keys.
        #[arg(long, env = "ABRIDGED_RECORD", value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
        record: Option<PathBuf>,
        /// Write each frame of the wire into a new file, one a line, without keys; frames over 64 KiB are cut.
        #[arg(long, env = "ABRIDGED_TRACE", value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
        trace: Option<PathBuf>,
        /// Keep the sessions in PostgreSQL: postgres://user@host/database. Default: the setting store.
        #[arg(long, env = "ABRIDGED_STORE", hide_env_values = true, value_name = "URL")]
        store: Option<String>,
    },
    /// See an agent run into its window and go on: no key, no network.
    ///
    /// Nothing is left behind. With --model, see a model write a summary.
    Demo {
        #[command(flatten)]
        model: ModelArguments,
        /// Print the raw dialogue instead of the picture.
        #[arg(long)]
        json: bool,
        /// Print the summary that is in the context at the end, whole.
        #[arg(long, conflicts_with_all = ["json", "model"])]
        summary: bool,
    },
    /// Talk to a model, and see its context kept inside the window.
    ///
    /// The conversation is a session of the data folder.
    Chat {
        #[command(flatten)]
        model: ModelArguments,
        /// Talk to a model of this program instead: no key, no network, nothing left behind.
        #[arg(long, conflicts_with = "model")]
        demo: bool,
        /// Write the frames to and from the daemon into a new file.
        #[arg(long, value_name = "FILE")]
        trace: Option<PathBuf>,
    },
    /// Compact one session file, in place and append-only.
    Compact {
        /// A session file of pi or oh-my-pi, or the beginning of the id of a session of the data folder.
        #[arg(value_name = "FILE|ID")]
        session: PathBuf,
        #[command(flatten)]
        model: ModelArguments,
        /// Where --model writes no summary, ask the models of the settings, and extract one at last.
        #[arg(long, requires = "model")]
        fallback: bool,
        /// Only say what would be done.
        #[arg(long)]
        dry_run: bool,
        /// Topics to keep above all.
        #[arg(long, value_name = "TEXT")]
        instructions: Option<String>,
        /// Tokens kept as they are.
        #[arg(long, value_name = "TOKENS", value_parser = tokens)]
        keep: Option<u64>,
        /// The data folder in which an id is looked up. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print each event as a line of JSON, then the result.
        #[arg(long)]
        json: bool,
        /// Write the frames to and from the daemon into a new file.
        #[arg(long, value_name = "FILE")]
        trace: Option<PathBuf>,
    },
    /// Take the last compaction or reset of a session back.
    Undo {
        /// A session file, or the beginning of the id of a session of the data folder.
        #[arg(value_name = "FILE|ID")]
        session: PathBuf,
        /// The data folder in which an id is looked up. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print the answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the summary in force, or an entry as it was written.
    ///
    /// It only reads the file.
    Show {
        /// A session file, or the beginning of the id of a session of the data folder. Default: the newest session.
        #[arg(value_name = "FILE|ID")]
        session: Option<PathBuf>,
        /// The beginning of an entry's id. Default: the summary in force.
        entry: Option<String>,
        /// The data folder in which an id is looked up. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print the entry as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find a text in all entries, compacted ones too.
    ///
    /// The newest match is first. Nothing changes.
    Search {
        /// A session file, or the beginning of the id of a session of the data folder.
        #[arg(value_name = "FILE|ID")]
        session: PathBuf,
        /// The text, taken literally. Case is ignored.
        text: String,
        /// The most matches.
        #[arg(long, value_name = "N", default_value = "50", value_parser = number)]
        limit: NonZeroUsize,
        /// The data folder in which an id is looked up. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print the answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a session into a new file, as Markdown or JSON lines.
    ///
    /// Markdown is for a person. A file whose name ends with .jsonl has every entry.
    Export {
        /// A session file, or the beginning of the id of a session of the data folder.
        #[arg(value_name = "FILE|ID")]
        session: PathBuf,
        /// The new file.
        out: PathBuf,
        /// The data folder in which an id is looked up. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Print the newest messages of a session.
    Tail {
        /// A session file, or the beginning of the id of a session of the data folder. Default: the newest session.
        #[arg(value_name = "FILE|ID")]
        session: Option<PathBuf>,
        /// The number of messages.
        #[arg(short = 'n', long, value_name = "N", default_value = "10", value_parser = number)]
        count: NonZeroUsize,
        /// Go on with those that come, until Ctrl-C.
        #[arg(short, long)]
        follow: bool,
        /// The data folder in which an id is looked up. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print each entry as JSON on a line.
        #[arg(long)]
        json: bool,
    },
    /// Say where everything is, which settings hold, and what is wrong.
    Doctor {
        /// Ask each model for a word. Without this nothing goes over the network.
        #[arg(long)]
        ask: bool,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// See the sessions of a data folder live.
    ///
    /// It shows how full they are, what runs, and what maintenance cost. It only reads files and locks.
    ///
    /// The size of a context is the last report of the provider, else an estimate (~). It is measured from the end of the file
    /// back to the last compaction, over 8 MiB at most; ≥ stands where there may be more. What a client told a daemon without
    /// storing it is not known here.
    Watch {
        /// The data folder. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print the sessions once, as without a terminal.
        #[arg(long)]
        once: bool,
        /// Print JSON: one document with --once, else an object on a line for each session that changed.
        #[arg(long)]
        json: bool,
    },
    /// List the sessions of a data folder, the newest first.
    ///
    /// Each stands below the session that it was made from. A context is measured as by watch: ~ stands before an estimate, ≥ where
    /// there may be more.
    Sessions {
        /// Those of all agents on this machine: also of pi, oh-my-pi, Claude Code, Codex, OpenCode and Gemini CLI.
        #[arg(long)]
        all: bool,
        /// Those of a store. Default: the setting store.
        #[arg(long, env = "ABRIDGED_STORE", hide_env_values = true, value_name = "URL")]
        store: Option<String>,
        /// Only those of a store with this text.
        #[arg(long, value_name = "TEXT", conflicts_with_all = ["all", "data"])]
        search: Option<String>,
        /// Only sessions with this working folder.
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// The most sessions that are listed.
        #[arg(long, value_name = "N", default_value = "20", value_parser = number)]
        limit: NonZeroUsize,
        /// The data folder. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Make a session of one of another agent, which stays as it is.
    ///
    /// The new session has its messages, tool calls, results, images, branches and usage, and names its origin.
    Import {
        /// The file of a session of Claude Code, Codex, OpenCode or Gemini CLI, or the beginning of its id.
        #[arg(value_name = "FILE|ID")]
        session: PathBuf,
        /// The working folder of the new session. Default: that of the original.
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// The data folder of the new session. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print the answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a session for another agent, which goes on with it.
    ///
    /// The session of any agent becomes a new one of that agent, in its own folder. A context that does not fit the window begins
    /// with a summary. The original stays as it is.
    Continue {
        /// The file of a session of any agent, or the beginning of its id.
        #[arg(value_name = "FILE|ID")]
        session: PathBuf,
        /// The agent that goes on: pi, oh-my-pi, claude-code, codex or opencode.
        #[arg(long = "in", value_name = "AGENT", value_parser = PossibleValuesParser::new(WRITTEN).try_map(agent))]
        agent: Agent,
        /// The working folder in which it goes on. Default: that of the original.
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// The data folder in which an id is looked up. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Print path, id and command as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put session files into a store, byte for byte.
    ///
    /// The files stay. A file whose session the store has already is named and left out.
    Push {
        /// Session files of pi, oh-my-pi or this program.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// The address of the store. Default: the setting store.
        #[arg(long, env = "ABRIDGED_STORE", hide_env_values = true, value_name = "URL")]
        store: Option<String>,
        /// Print one JSON object for each file.
        #[arg(long)]
        json: bool,
    },
    /// Write a session of a store into a new file, byte for byte.
    ///
    /// The session stays in the store.
    Pull {
        /// The beginning of the session's id.
        #[arg(value_name = "ID")]
        id: String,
        /// The new file. Default: one in the data folder.
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// The address of the store. Default: the setting store.
        #[arg(long, env = "ABRIDGED_STORE", hide_env_values = true, value_name = "URL")]
        store: Option<String>,
        /// Print path and id as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Answer a hook of Claude Code or Codex.
    #[command(hide = true)]
    Hook {
        #[command(subcommand)]
        event: HookEvent,
    },
    /// Draw the tree of a session: branches, compactions, labels.
    ///
    /// It only reads the file, also while a daemon has it open.
    ///
    /// A conversation goes straight down. Branches stand to the right, between the entry that they begin at and the one that
    /// goes on there. Lines that only programs read are not drawn; the middle of a long run of entries is one line.
    Tree {
        /// A session file, or the beginning of the id of a session of the data folder.
        #[arg(value_name = "FILE|ID")]
        session: PathBuf,
        /// The data folder in which an id is looked up. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Draw every entry of a long run.
        #[arg(long)]
        all: bool,
        /// Print one JSON document: leafEntryId, and all nodes as session/tree has them.
        #[arg(long)]
        json: bool,
    },
    /// Write a page for a browser: a session's context over time
    ///
    /// The page shows the size of the context with its window, its threshold and its events, and of each compaction what it kept, covered
    /// and cost, its summary, and the way to each original. It reads files only. The page is one file, and it loads nothing.
    Report {
        /// A session file, or the beginning of the id of a session of the data folder. Default: the newest session.
        #[arg(value_name = "FILE|ID", conflicts_with = "all")]
        session: Option<PathBuf>,
        /// A page about the sessions of the data folder.
        #[arg(long)]
        all: bool,
        /// The page; - is stdout. An earlier report is replaced, any other file is not.
        #[arg(short, long, value_name = "FILE", default_value = "report.html")]
        out: PathBuf,
        /// The data folder. Default: ABRIDGED_DATA_DIR, else the platform's own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Print the completions for a shell.
    Completions {
        /// Which one.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command.
    #[command(hide = true)]
    Man {
        /// The folder they are written to.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Write the machine-readable protocol.
    #[command(hide = true)]
    Schema {
        /// The folder it is written to.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(Subcommand)]
enum HookEvent {
    /// After a compaction, put the facts of the condensed part into the next context.
    ///
    /// It reads the input of the agent's hook SessionStart from stdin. Where there is nothing to say, it prints nothing.
    SessionStart,
}

/// The agents for which a session is written.
const WRITTEN: [&str; 5] = ["pi", "oh-my-pi", "claude-code", "codex", "opencode"];

fn agent(name: String) -> Result<Agent, &'static str> {
    Agent::ALL.into_iter().find(|agent| agent.name() == name).ok_or("no agent")
}

#[derive(Args)]
struct ModelArguments {
    /// A model of a known provider with its key in the environment, or of the settings.
    #[arg(long, value_name = "PROVIDER/ID", value_parser = Named::parse_model)]
    model: Option<ModelRef>,
    /// Where the model is asked.
    #[arg(long, value_name = "URL", requires = "model")]
    base_url: Option<String>,
    /// Its wire format. Default: openai_chat.
    #[arg(long, requires = "model", value_parser = PossibleValuesParser::new(APIS).try_map(api))]
    api: Option<Api>,
}

/// Those that can be asked from a shell.
const APIS: [&str; 4] = ["anthropic", "openai_chat", "openai_responses", "google"];

impl ModelArguments {
    fn named(self) -> Option<Named> {
        Some(Named { model: self.model?, base_url: self.base_url, api: self.api })
    }
}

/// A level of the log. An empty variable is one that is not set.
fn level(name: &str) -> Result<tracing::Level, String> {
    match name {
        "" => Ok(tracing::Level::WARN),
        name => name.parse().map_err(|_| "expected error, warn, info, debug or trace".to_owned()),
    }
}

fn number(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "expected a number from 1 on")
}

fn tokens(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "expected a number of tokens, for example 20000")
}

fn api(name: String) -> Result<Api, &'static str> {
    Api::parse(&name).ok_or("no wire format")
}

#[derive(Clone, Copy, ValueEnum)]
enum FramingArgument {
    /// Chosen by the first byte the client sends.
    Auto,
    /// One JSON text a line.
    Ndjson,
    /// LSP's headers.
    ContentLength,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(refused) => return told(&refused),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // Where stderr cannot be written, a line is lost and nothing else.
        .log_internal_errors(false)
        // Libraries log headers and addresses, which may have keys.
        .with_filter(Targets::new().with_target("abridged", arguments.log));
    tracing_subscriber::registry().with(lines).init();
    let command = match arguments.command {
        Some(command) => command,
        None if std::io::stdin().is_terminal() => {
            cli::print::bytes(Arguments::command().render_help().to_string().as_bytes());
            return ended(Ok(0));
        }
        // With its defaults and its variables.
        None => match Arguments::parse_from(["abridged", "serve"]).command {
            Some(serve) => serve,
            None => return ExitCode::FAILURE,
        },
    };
    let done = match command {
        Command::Serve { framing, record, trace, store } => {
            let framing = match framing {
                FramingArgument::Auto => None,
                FramingArgument::Ndjson => Some(Framing::Ndjson),
                FramingArgument::ContentLength => Some(Framing::ContentLength),
            };
            // An empty variable is one that is not set.
            let [record, trace] =
                [&record, &trace].map(|path| path.as_deref().filter(|path| !path.as_os_str().is_empty()));
            abridged::daemon::serve::serve(framing, record, trace, store.as_deref())
        }
        Command::Demo { model, json, summary } => {
            let output = match (json, summary) {
                (true, _) => cli::demo::Output::Dialogue,
                (false, true) => cli::demo::Output::Summary,
                (false, false) => cli::demo::Output::Picture,
            };
            cli::demo::run(model.named().as_ref(), output)
        }
        Command::Chat { model, demo, trace } => {
            cli::chat::run(&cli::chat::Request { model: model.named(), demo, trace })
        }
        Command::Compact { session, model, fallback, dry_run, instructions, keep, data, json, trace } => {
            let model = model.named();
            let request =
                cli::compact::Request { session, data, model, fallback, dry_run, instructions, keep, json, trace };
            cli::compact::run(&request)
        }
        Command::Undo { session, data, json } => cli::undo::run(&cli::undo::Request { session, data, json }),
        Command::Show { session, entry, data, json } => {
            cli::show::run(&cli::show::Request { session, entry, data, json })
        }
        Command::Search { session, text, limit, data, json } => {
            cli::search::run(&cli::search::Request { session, text, limit, data, json })
        }
        Command::Export { session, out, data } => cli::export::run(&cli::export::Request { session, out, data }),
        Command::Tail { session, count, follow, data, json } => {
            cli::tail::run(&cli::tail::Request { session, count, follow, data, json })
        }
        Command::Doctor { ask, json } => cli::doctor::run(ask, json),
        Command::Watch { data, once, json } => cli::watch::run(&cli::watch::Request { data, once, json }),
        Command::Sessions { all, store, search, cwd, limit, data, json } => {
            let now = abridged::clock::now();
            cli::sessions::run(&cli::sessions::Request { data, all, store, search, cwd, limit, json, now })
        }
        Command::Import { session, cwd, data, json } => {
            cli::importing::run(&cli::importing::Request { session, cwd, data, json })
        }
        Command::Continue { session, agent, cwd, data, json } => {
            let now = abridged::clock::now();
            cli::continuing::run(&cli::continuing::Request { session, agent, cwd, data, json, now })
        }
        Command::Push { files, store, json } => cli::stored::push(&cli::stored::Push { files, store, json }),
        Command::Pull { id, out, store, json } => cli::stored::pull(&cli::stored::Pull { id, out, store, json }),
        Command::Hook { event: HookEvent::SessionStart } => cli::hook::session_start(),
        Command::Tree { session, data, all, json } => cli::tree::run(&cli::tree::Request { session, data, all, json }),
        Command::Report { session, all, out, data } => {
            let now = abridged::clock::now();
            cli::report::run(&cli::report::Request { session, all, out, data, now })
        }
        Command::Completions { shell } => Ok(completions(shell)),
        Command::Man { out } => cli::man::run(Arguments::command(), &out),
        Command::Schema { out } => cli::schema::run(&out),
    };
    ended(done)
}

/// Ends the output. Of two errors the one of the command is shown: it says why.
fn ended(done: Result<i32, String>) -> ExitCode {
    match done.and_then(|code| cli::print::end().map(|()| code)) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            cli::print::note(&cli::print::words::in_shell(&error));
            ExitCode::FAILURE
        }
    }
}

/// Prints the help that was asked for, or why the arguments are refused. They may be names of files, which a stranger gives.
fn told(refused: &clap::Error) -> ExitCode {
    if !refused.use_stderr() {
        cli::print::bytes(refused.render().to_string().as_bytes());
        return ended(Ok(0));
    }
    let named = refused.context().filter_map(|(_, value)| match value {
        ContextValue::String(argument) => Some(argument),
        _ => None,
    });
    // A name may have ends of lines, which are no others in the error.
    let text = named.fold(refused.to_string(), |text, argument| text.replace(argument, &cli::print::plain(argument)));
    cli::print::refused(&text);
    ExitCode::from(2)
}

fn completions(shell: clap_complete::Shell) -> i32 {
    // Gathered first: the generator does not expect that somebody stops reading.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "abridged", &mut text);
    cli::print::bytes(&text);
    0
}
