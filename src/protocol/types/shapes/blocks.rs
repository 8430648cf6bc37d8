//! Schemas of blocks, of the content of a message, and of values that stand in messages and entries.

use super::{any, boolean, constant, list, number, object, of, open, optional, required, shape, text, with_own_fields};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

/// A text, or blocks.
pub(super) fn content(generator: &mut SchemaGenerator) -> Value {
    json!({ "anyOf": [text(), list(of::<Block>(generator))] })
}

fn block(name: &str, fields: Vec<super::Field>) -> Value {
    let mut all = vec![required("type", "Type of the block.", constant(name))];
    all.extend(fields);
    with_own_fields(object(all))
}

shape! {
    /// A block of a message, told apart by `type`. A block of another type is an `OtherBlock`: in the `default` of a
    /// `switch (block.type)`, `const other: OtherBlock = block`.
    Block = |generator| json!({ "anyOf": [
        of::<TextBlock>(generator),
        of::<ThinkingBlock>(generator),
        of::<ToolCallBlock>(generator),
        of::<ImageBlock>(generator),
        open(of::<OtherBlock>(generator)),
    ] });

    /// A text.
    TextBlock = |_| block("text", vec![
        required("text", "The text.", text()),
        optional("textSignature", "Signature of its provider. The provider gets it back unchanged.", text()),
    ]);

    /// Thinking of a model. With a signature its provider gets it back unchanged, or not at all.
    ThinkingBlock = |_| block("thinking", vec![
        required("thinking", "The text; empty where the provider hides it.", text()),
        optional("thinkingSignature", "Signature of its provider, or the hidden thinking.", text()),
        optional("redacted", "Whether the signature holds the thinking, which is hidden.", boolean()),
    ]);

    /// A call of a tool.
    ToolCallBlock = |generator| block("toolCall", vec![
        required("id", "Id of the call. The result names it.", text()),
        required("name", "Name of the tool.", text()),
        required("arguments", "Arguments of the call.", of::<CallArguments>(generator)),
        optional("thoughtSignature", "Signature of its provider. The provider gets it back unchanged.", text()),
    ]);

    /// An image.
    ImageBlock = |_| block("image", vec![
        required("data", "The image, in base64.", text()),
        required("mimeType", "Its type, for example `image/png`.", text()),
    ]);

    /// A block of a type that this version does not know. It is passed on.
    OtherBlock = |_| with_own_fields(object(vec![required("type", "Type of the block.", text())]));

    /// A block of a message that a client supplies: a text or an image.
    PromptBlock = |generator| json!({ "anyOf": [of::<TextBlock>(generator), of::<ImageBlock>(generator)] });

    /// A tool in the form of this protocol.
    ToolDefinition = |_| with_own_fields(object(vec![
        required("name", "Name of the tool.", text()),
        required("description", "Description for the model.", text()),
        optional("inputSchema", "JSON Schema of the arguments.", json!({ "type": "object" })),
    ]));

    /// Arguments of a call: an object, as far as the model wrote one.
    CallArguments = |_| json!({ "anyOf": [{ "type": "object", "additionalProperties": true }, open(any())] });

    /// Lists of files of a summary. A hook may give any JSON value in their place, which is kept as it is.
    SummaryDetails = |_| with_own_fields(object(vec![
        optional("readFiles", "Files that were read and not changed.", list(text())),
        optional("modifiedFiles", "Files that were changed.", list(text())),
    ]));

    /// Tokens of a model request, as its provider reports them. A count that is missing is zero.
    ReportedUsage = |generator| {
        let cost = of::<ReportedCost>(generator);
        with_own_fields(object(vec![
            optional("input", "Input that was not cached, in tokens.", number()),
            optional("output", "Output, in tokens.", number()),
            optional("cacheRead", "Input that was read from the provider's cache, in tokens.", number()),
            optional("cacheWrite", "Input that was written to the provider's cache, in tokens.", number()),
            optional("totalTokens", "All of it, in tokens.", number()),
            optional("cost", "Cost in dollars; zeros where the prices are not known.", cost),
        ]))
    };

    /// Cost of a model request, in dollars.
    ReportedCost = |_| with_own_fields(object(vec![
        optional("input", "Cost of the input.", number()),
        optional("output", "Cost of the output.", number()),
        optional("cacheRead", "Cost of cached input.", number()),
        optional("cacheWrite", "Cost of writing to the cache.", number()),
        optional("total", "All of it.", number()),
    ]));
}

/// The details of a summary: lists of files, or any value of a hook.
pub(in super::super) fn details(generator: &mut SchemaGenerator) -> Schema {
    json!({ "anyOf": [of::<SummaryDetails>(generator), open(any())] }).try_into().expect("a schema is an object")
}

/// A usage, or a value that is none. An answer with such a value is in the context, and its usage is not used.
pub(super) fn usage(generator: &mut SchemaGenerator) -> Value {
    json!({ "anyOf": [of::<ReportedUsage>(generator), open(json!({ "type": "object" }))] })
}
