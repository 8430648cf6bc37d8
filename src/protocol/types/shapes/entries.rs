//! Schemas of entries, told apart by `type`: those of this program, of pi and of oh-my-pi.

use super::{
    Field, any, blocks, boolean, constant, messages::SystemMessage, number, object, of, open, optional, required,
    shape, text, with_own_fields,
};
use crate::{ids::EntryId, protocol::types::Message};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

/// An entry of a session file.
pub(in super::super) fn entry(generator: &mut SchemaGenerator) -> Schema {
    let members: [Value; 15] = [
        of::<MessageEntry>(generator),
        of::<CompactionEntry>(generator),
        of::<BranchSummaryEntry>(generator),
        of::<CustomMessageEntry>(generator),
        of::<CustomEntry>(generator),
        of::<ContextEditEntry>(generator),
        of::<LabelEntry>(generator),
        of::<SessionInfoEntry>(generator),
        of::<TitleChangeEntry>(generator),
        of::<ModelChangeEntry>(generator),
        of::<ThinkingLevelChangeEntry>(generator),
        of::<ResetBoundaryEntry>(generator),
        of::<UsageEntry>(generator),
        of::<ModelUsageEntry>(generator),
        open(of::<OtherEntry>(generator)),
    ];
    let description = "\
        An entry of a session file, told apart by `type`, with the fields that this program, pi and oh-my-pi write. A line of \
        another program may have another type or lack fields; it is an `OtherEntry`: in the `default` of a `switch \
        (entry.type)`, `const other: OtherEntry = entry`.";
    json!({ "description": description, "anyOf": members }).try_into().expect("a schema is an object")
}

/// An entry of this type with these fields.
fn typed(name: &str, generator: &mut SchemaGenerator, fields: Vec<Field>) -> Value {
    let (id, parent) = (of::<EntryId>(generator), json!({ "anyOf": [of::<EntryId>(generator), { "type": "null" }] }));
    let mut all = vec![
        required("type", "Type of the entry.", constant(name)),
        required("id", "Id of the entry.", id),
        required("parentId", "Entry that it follows; null for the first one.", parent),
        required("timestamp", "Time at which it was written.", text()),
    ];
    all.extend(fields);
    object(all)
}

/// Data of programs, by their names.
fn preserved() -> Field {
    let description =
        "Data that programs keep for themselves, by their names. That of this program is under `abridged`.";
    optional("preserveData", description, json!({ "type": "object", "additionalProperties": true }))
}

/// Marks of a summary that a hook or an extension supplied.
fn from_others() -> [Field; 2] {
    let description = "Whether a hook or an extension supplied the summary.";
    [optional("fromHook", description, boolean()), optional("fromExtension", description, boolean())]
}

shape! {
    /// A message of the conversation.
    MessageEntry = |generator| {
        let message = of::<Message>(generator);
        typed("message", generator, vec![required("message", "The message.", message)])
    };

    /// A summary that stands for everything before `firstKeptEntryId`.
    CompactionEntry = |generator| {
        let (id, details, system) =
            (of::<EntryId>(generator), blocks::details(generator).to_value(), of::<SystemMessage>(generator));
        let mut fields = vec![
            required("summary", "The summary.", text()),
            optional("shortSummary", "Two sentences for a person.", text()),
            optional("firstKeptEntryId", "First entry that is kept verbatim. Its own id keeps none.", id.clone()),
            required("tokensBefore", "Size of the context before, in tokens.", number()),
            optional("tokensAfter", "Size of the context after, in tokens.", number()),
            optional("method", "Method of the summary, as in `CompactionResult`.", text()),
            optional("details", "Lists of files, or the details of a hook.", details),
            preserved(),
            optional("systemMessage", "System prompt and tools at that time.", system),
            optional("usage", "Tokens of the summary, in files of pi.", blocks::usage(generator)),
            optional("providerReplayThroughEntryId", "oh-my-pi sends no entries up to this one.", id),
        ];
        fields.extend(from_others());
        typed("compaction", generator, fields)
    };

    /// A summary of a branch that was left.
    BranchSummaryEntry = |generator| {
        let details = blocks::details(generator).to_value();
        let mut fields = vec![
            required("fromId", "Leaf of the branch that was left; `root` for none.", text()),
            required("summary", "The summary.", text()),
            optional("method", "Method of the summary, as in `CompactionResult`.", text()),
            optional("details", "Lists of files, or the details of a hook.", details),
            preserved(),
            optional("usage", "Tokens of the summary, in files of pi.", blocks::usage(generator)),
        ];
        fields.extend(from_others());
        typed("branch_summary", generator, fields)
    };

    /// A message of an extension. Models get it as a message of the user.
    CustomMessageEntry = |generator| {
        let content = blocks::content(generator);
        typed("custom_message", generator, vec![
            required("customType", "Type of the message, which names its owner.", text()),
            required("content", "A text, or blocks.", content),
            optional("display", "Whether a program shows it.", boolean()),
            optional("details", "Data of the owner.", any()),
        ])
    };

    /// Data of a program. No model gets it. The line of a broken entry is replaced by one of the type `abridged.corrupt`,
    /// whose `parentId` may be missing.
    CustomEntry = |generator| {
        let mut entry = typed("custom", generator, vec![
            required("customType", "Type of the data, which names its owner.", text()),
            optional("data", "The data.", any()),
        ]);
        if let Some(names) = entry["required"].as_array_mut() {
            names.retain(|name| name != "parentId");
        }
        entry
    };

    /// Another content for an entry, or none. The entry itself stays in the file.
    ContextEditEntry = |generator| {
        let (id, content) = (of::<EntryId>(generator), blocks::content(generator));
        let replacement = object(vec![required("content", "A text, or blocks.", content)]);
        let replacement = json!({ "anyOf": [with_own_fields(replacement), { "type": "null" }] });
        let mark = object(vec![optional("compactionEntryId", "Compaction that carries the edit.", id.clone())]);
        typed("context_edit", generator, vec![
            required("targetId", "Entry that is edited.", id),
            required("replacement", "Content in the place of the entry's; null leaves the entry out.", replacement),
            optional("abridged", "Mark of an edit for other programs, which changes no context here.", with_own_fields(mark)),
        ])
    };

    /// A label of an entry.
    LabelEntry = |generator| {
        let id = of::<EntryId>(generator);
        typed("label", generator, vec![
            required("targetId", "Entry that has the label.", id),
            optional("label", "The label. Without one it is removed.", text()),
        ])
    };

    /// The title of the session.
    SessionInfoEntry = |generator| typed("session_info", generator, vec![optional("name", "The title.", text())]);

    /// The title of the session, in files of oh-my-pi.
    TitleChangeEntry = |generator| typed("title_change", generator, vec![optional("title", "The title.", text())]);

    /// The model from here on: `provider` and `modelId`, or `model` in files of oh-my-pi.
    ModelChangeEntry = |generator| typed("model_change", generator, vec![
        optional("provider", "Provider of the model.", text()),
        optional("modelId", "Id of the model.", text()),
        optional("model", "The model as `provider/id`, in files of oh-my-pi.", text()),
    ]);

    /// The thinking level from here on.
    ThinkingLevelChangeEntry = |generator| typed("thinking_level_change", generator, vec![
        optional("thinkingLevel", "The thinking level.", text()),
    ]);

    /// A `/clear`: nothing before it is in the context.
    ResetBoundaryEntry = |generator| {
        let system = of::<SystemMessage>(generator);
        typed("reset_boundary", generator, vec![
            optional("systemMessage", "System prompt and tools at that time.", system),
            preserved(),
        ])
    };

    /// Tokens of a model request beside the turns.
    UsageEntry = |generator| {
        let fields = cost(generator);
        typed("usage", generator, fields)
    };

    /// The same in files of oh-my-pi.
    ModelUsageEntry = |generator| {
        let fields = cost(generator);
        typed("model_usage", generator, fields)
    };

    /// An entry of a type, or with fields, that this version does not know. It is kept, and adds nothing to a context.
    OtherEntry = |generator| {
        let id = of::<EntryId>(generator);
        with_own_fields(object(vec![
            required("type", "Type of the entry.", text()),
            required("id", "Id of the entry.", id.clone()),
            optional("parentId", "Entry that it follows.", id),
        ]))
    };
}

fn cost(generator: &mut SchemaGenerator) -> Vec<Field> {
    vec![
        optional("purpose", "Purpose of the request, as in `llm/complete`.", text()),
        optional("kind", "The same for other programs.", text()),
        optional("trigger", "Reason of the operation that made the request.", text()),
        optional("provider", "Provider that answered.", text()),
        optional("model", "Model that answered.", text()),
        optional("usage", "Tokens that the provider reports.", blocks::usage(generator)),
        optional("operationId", "Operation that made the request.", text()),
    ]
}
