//! Scripts of a shell, as agents run them: the programs in them and the files that they use. One lexer reads a script, and both
//! are readers of its commands.

mod calls;
mod folders;
mod options;
mod programs;
mod runs;
mod tokens;
mod uses;

pub(in crate::summary) use calls::{CODES, COMMANDS, other_calls, script_of, string_literal};
pub use calls::{is_same_tool, is_shell};
pub use folders::is_absolute;
pub(in crate::summary) use programs::is_variable;
pub(in crate::summary) use runs::{ExitCode, Run, runs};
pub use uses::{Use, runs_one_command, uses};
