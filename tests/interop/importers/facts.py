"""The facts of a session, as abridged and as the oracles read it."""

import json

from plans import canonical


def texts(content):
    if isinstance(content, str):
        return [content] if content else []
    return [block["text"] for block in content if block["type"] == "text" and block["text"]]


def of_message(message):
    """The facts of a message in pi's form."""
    role, content = message["role"], message["content"]
    images = [("image", block["data"]) for block in content if isinstance(block, dict) and block["type"] == "image"]
    if role == "toolResult":
        yield "result", message["toolCallId"].split("|")[0], "\n".join(texts(content)), message["isError"]
        yield from images
    elif role == "assistant":
        for block in content:
            match block["type"]:
                case "thinking" if block["thinking"]:
                    yield "thought", block["thinking"]
                case "text" if block["text"]:
                    yield "assistant", block["text"]
                case "toolCall":
                    yield "call", block["id"].split("|")[0], block["name"], canonical(block["arguments"])
        usage = message["usage"]
        if usage["totalTokens"]:
            yield "usage", usage["input"], usage["output"], usage["cacheRead"], usage["cacheWrite"]
    else:
        yield from ((role, text) for text in texts(content))
        yield from images


def of_messages(messages):
    return [fact for message in messages for fact in of_message(message)]


def of_entry(entry):
    match entry["type"]:
        case "message":
            yield from of_message(entry["message"])
        case "custom_message":
            yield from (("note", text) for text in texts(entry["content"]))
        case "compaction":
            yield "compaction", entry["summary"]


def of_entries(entries, leaf):
    """The facts of the active path in their order, and those of all branches."""
    known, path = {entry["id"]: entry for entry in entries}, []
    if len(known) != len(entries):
        raise AssertionError("two entries have one id")
    while leaf:
        entry = known.pop(leaf)
        path.append(entry)
        leaf = entry["parentId"]
    return [fact for entry in reversed(path) for fact in of_entry(entry)], [fact for entry in entries for fact in of_entry(entry)]


def difference(ours, truth):
    """The first place in which two sequences differ."""
    at = next((at for at, (a, b) in enumerate(zip(ours, truth)) if a != b), min(len(ours), len(truth)))
    return f"at {at} of {len(ours)} and {len(truth)}: {str(ours[at:at + 2])[:200]} in the place of {str(truth[at:at + 2])[:200]}"
