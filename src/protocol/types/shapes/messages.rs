//! Schemas of messages, told apart by `role`.

use super::{
    Field, any, blocks, boolean, constant, list, number, object, of, optional, required, shape, text, with_own_fields,
};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

/// A message in pi's form.
pub(in super::super) fn message(generator: &mut SchemaGenerator) -> Schema {
    let members: [Value; 12] = [
        of::<UserMessage>(generator),
        of::<AssistantMessage>(generator),
        of::<ToolResultMessage>(generator),
        of::<BashExecutionMessage>(generator),
        of::<PythonExecutionMessage>(generator),
        of::<CustomMessage>(generator),
        of::<HookMessage>(generator),
        of::<FileMentionMessage>(generator),
        of::<DeveloperMessage>(generator),
        of::<SystemMessage>(generator),
        of::<BranchSummaryMessage>(generator),
        of::<CompactionSummaryMessage>(generator),
    ];
    let description = "A message in pi's form, told apart by `role`. Fields that are not named here are kept.";
    json!({ "description": description, "oneOf": members }).try_into().expect("a schema is an object")
}

/// A message of this role with these fields.
fn role(name: &str, fields: Vec<Field>) -> Value {
    let mut all = vec![required("role", "Role of the message.", constant(name))];
    all.extend(fields);
    let when = "Time, in milliseconds since 1970. `session/append` adds it where it is missing.";
    let mut time = number();
    time["description"] = when.into();
    all.push(Field { name: "timestamp", schema: time, is_required: false });
    with_own_fields(object(all))
}

/// A message of this role with a text or blocks.
fn with_content(name: &str, generator: &mut SchemaGenerator, mut fields: Vec<Field>) -> Value {
    fields.insert(0, required("content", "A text, or blocks.", blocks::content(generator)));
    role(name, fields)
}

fn summary(name: &str) -> Value {
    role(name, vec![required("summary", "The summary.", text())])
}

shape! {
    /// A message of the user.
    UserMessage = |generator| with_content("user", generator, vec![]);

    /// An answer of a model.
    AssistantMessage = |generator| {
        let usage = blocks::usage(generator);
        with_content("assistant", generator, vec![
            optional("api", "API of the provider.", text()),
            optional("provider", "Provider that answered; `unknown` where nobody said it.", text()),
            optional("model", "Model that answered; `unknown` where nobody said it.", text()),
            optional("usage", "Tokens that the provider reports.", usage),
            optional("stopReason", "`stop`, `length`, `toolUse`, `error` or `aborted`.", text()),
            optional("errorMessage", "The provider's text where the request failed.", text()),
        ])
    };

    /// A tool result.
    ToolResultMessage = |generator| with_content("toolResult", generator, vec![
        required("toolCallId", "Id of the call that it answers.", text()),
        optional("toolName", "Name of the tool.", text()),
        optional("isError", "Whether the tool failed.", boolean()),
        optional("details", "Data of the tool for programs. It is not sent to a model.", any()),
    ]);

    /// A command that the user ran beside the model.
    BashExecutionMessage = |_| role("bashExecution", vec![
        required("command", "The command.", text()),
        optional("output", "Its output.", text()),
        optional("exitCode", "Its exit code.", json!({ "type": "integer" })),
        optional("cancelled", "Whether it was cancelled.", boolean()),
        optional("truncated", "Whether the output was cut.", boolean()),
        optional("excludeFromContext", "Whether it is sent to no model.", boolean()),
    ]);

    /// Python code that the user ran beside the model, in files of oh-my-pi.
    PythonExecutionMessage = |_| role("pythonExecution", vec![
        required("code", "The code.", text()),
        optional("output", "Its output.", text()),
        optional("exitCode", "Its exit code.", json!({ "type": "integer" })),
        optional("excludeFromContext", "Whether it is sent to no model.", boolean()),
    ]);

    /// A message of an extension.
    CustomMessage = |generator| with_content("custom", generator, vec![
        optional("customType", "Type of the message, which names its owner.", text()),
        optional("display", "Whether a program shows it.", boolean()),
        optional("details", "Data of the extension.", any()),
    ]);

    /// A message of a hook, in older files of oh-my-pi.
    HookMessage = |generator| with_content("hookMessage", generator, vec![]);

    /// Files that the user mentions, in files of oh-my-pi.
    FileMentionMessage = |_| {
        let file = object(vec![
            optional("path", "Path of the file.", text()),
            optional("content", "Content of the file.", text()),
        ]);
        role("fileMention", vec![required("files", "The files.", list(with_own_fields(file)))])
    };

    /// An instruction of an agent, not of the user.
    DeveloperMessage = |generator| with_content("developer", generator, vec![]);

    /// A change of system prompt and tools that pi stores among the messages.
    SystemMessage = |generator| {
        let content = blocks::content(generator);
        role("system", vec![
            optional("content", "A text, or blocks.", content),
            optional("sections", "Texts of the system prompt by their names; null removes one.", json!({ "type": "object", "additionalProperties": true })),
            optional("toolsAdded", "Tools that are added.", list(any())),
            optional("toolsRemoved", "Names of tools that are removed.", list(any())),
        ])
    };

    /// A summary of a branch that is stored as a message.
    BranchSummaryMessage = |_| summary("branchSummary");

    /// A summary of a compaction that is stored as a message.
    CompactionSummaryMessage = |_| summary("compactionSummary");
}
