//! The command line.

use abridged::{cli, transport::Framing};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

/// Owns the sessions of LLM agents and keeps them inside the model's context window, over JSON-RPC on stdio.
#[derive(Parser)]
#[command(name = "abridged", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// What is logged to stderr: error, warn, info, debug or trace. Never payloads or keys.
    #[arg(long, global = true, env = "ABRIDGED_LOG", default_value = "warn", value_name = "LEVEL")]
    log: tracing::Level,
}

#[derive(Subcommand)]
enum Command {
    /// Serve JSON-RPC on stdin and stdout. The default when stdin is not a terminal.
    Serve {
        /// How frames stand in the stream.
        #[arg(long, value_enum, default_value_t = FramingArgument::Auto)]
        framing: FramingArgument,
    },
    /// See the main job done, on a bundled session: no key, no network, nothing left behind.
    Demo {
        /// Print the raw dialogue instead of the picture.
        #[arg(long)]
        json: bool,
    },
    /// Compact one session file, in place and append-only.
    Compact {
        /// The session file: pi's of every version, or oh-my-pi's.
        file: PathBuf,
        /// Only say what would be done.
        #[arg(long)]
        dry_run: bool,
        /// What to keep above all.
        #[arg(long, value_name = "TEXT")]
        instructions: Option<String>,
        /// Tokens kept as they are.
        #[arg(long, value_name = "TOKENS")]
        keep: Option<u64>,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say where everything is, what holds in this folder and who says so, and what is wrong.
    Doctor {
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the completions for a shell.
    Completions {
        /// Which one.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the machine-readable protocol.
    Schema {
        /// The folder it is written to.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
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
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_max_level(arguments.log)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let command = match arguments.command {
        Some(command) => command,
        None if std::io::stdin().is_terminal() => {
            let _ = Arguments::command().print_help();
            return ExitCode::SUCCESS;
        }
        None => Command::Serve { framing: FramingArgument::Auto },
    };
    let done = match command {
        Command::Serve { framing } => abridged::serve::serve(match framing {
            FramingArgument::Auto => None,
            FramingArgument::Ndjson => Some(Framing::Ndjson),
            FramingArgument::ContentLength => Some(Framing::ContentLength),
        }),
        Command::Demo { json } => cli::demo::run(json),
        Command::Compact { file, dry_run, instructions, keep, json } => {
            cli::compact::run(&cli::compact::Request { file, dry_run, instructions, keep, json })
        }
        Command::Doctor { json } => cli::doctor::run(json),
        Command::Completions { shell } => Ok(completions(shell)),
        Command::Schema { out } => cli::schema::run(&out),
    };
    match done {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            eprintln!("abridged: {error}");
            ExitCode::FAILURE
        }
    }
}

fn completions(shell: clap_complete::Shell) -> i32 {
    // Gathered first: the generator does not expect that somebody stops reading.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "abridged", &mut text);
    let _ = std::io::stdout().write_all(&text);
    0
}
