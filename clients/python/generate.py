"""Writes src/abridged/types.py from protocol/schema.json and protocol/openrpc.json.

    python generate.py            # writes the file
    python generate.py --check    # fails if the file differs from the protocol
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROTOCOL = HERE.parents[1] / "protocol"
TARGET = HERE / "src" / "abridged" / "types.py"

HEAD = '''\
"""The protocol of abridged, version 1. Made from protocol/schema.json by generate.py; do not edit.

A newer daemon may send fields and values that are not listed here: a `match` or an `if` on them needs a default.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, final, overload

if sys.version_info >= (3, 11):
    from typing import NotRequired, Unpack
elif TYPE_CHECKING:
    from typing_extensions import NotRequired, Unpack
'''

PRIMITIVES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

Schema = dict[str, Any]


class Module:
    """The definitions of types.py: classes, and aliases, which stand after the names that they use."""

    def __init__(self, schemas: dict[str, Schema], inputs: set[str]) -> None:
        self.schemas, self.inputs = schemas, inputs
        self.classes: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        for name, schema in schemas.items():
            self.define(name, schema)

    def define(self, name: str, schema: Schema) -> None:
        if schema.get("properties"):
            self.record(name, schema)
        elif name not in self.aliases:
            # A name that is used before its alias is a part of it.
            for part in re.findall(r"#/\$defs/(\w+)", json.dumps(schema)):
                if part != name and not self.schemas[part].get("properties"):
                    self.define(part, self.schemas[part])
            self.aliases[name] = f"{name}: TypeAlias = {self.expression(name, schema, is_input=True)}\n{doc(schema)}"

    def record(self, name: str, schema: Schema) -> str:
        """Defines a TypedDict."""
        if name in self.classes:
            raise SystemExit(f"two types are named {name}")
        self.classes[name] = ""  # keeps its place before the types of its fields
        required = schema.get("required", [])
        fields = {}
        for key, value in schema["properties"].items():
            type = self.expression(name + pascal(key), value, is_input=name in self.inputs)
            fields[key] = type if key in required else f"NotRequired[{type}]"
        if all(key.isidentifier() and not keyword.iskeyword(key) for key in fields):
            body = [f"    {key}: {type}\n{doc(schema['properties'][key], 4)}" for key, type in fields.items()]
            about = doc(schema, 4) + "\n" if schema.get("description") else ""
            self.classes[name] = f"@final\nclass {name}(TypedDict):\n{about}{''.join(body) or '    pass'}"
        else:
            # The class syntax has no place for a key that is a keyword, and here annotations are values.
            body = [f'        "{key}": {type!r},\n' for key, type in fields.items()]
            self.classes[name] = f'{name} = TypedDict(\n    "{name}",\n    {{\n{"".join(body)}    }},\n)\n{doc(schema)}'
        return name

    def expression(self, name: str, schema: Schema, *, is_input: bool = False) -> str:
        """A type as it stands in an annotation. `name` is the name that a record in it gets."""
        if "$ref" in schema:
            return str(schema["$ref"].rsplit("/", 1)[1])
        if "const" in schema:
            return f"Literal[{json.dumps(schema['const'])}]"
        if "enum" in schema:
            return f"Literal[{', '.join(map(json.dumps, schema['enum']))}]"
        if variants := schema.get("oneOf") or schema.get("anyOf"):
            # An open variant stands for values of other versions; with it no other variant can be told apart.
            variants = [variant for variant in variants if "x-open" not in variant]
            # A record of an alias needs another name than the alias.
            alone = "Object" if name in self.schemas else ""
            return union(self.expression(name + suffix(variant, variants, alone), variant, is_input=is_input) for variant in variants)
        kind = schema.get("type")
        if isinstance(kind, list):
            return union(self.expression(name, schema | {"type": one}, is_input=is_input) for one in kind)
        if kind == "array":
            items = self.expression(name + "Item", schema["items"], is_input=is_input)
            return f"{'Sequence' if is_input else 'list'}[{items}]"
        if kind == "object":
            if is_record(schema):
                return self.record(name, schema)
            values = schema.get("additionalProperties")
            values = self.expression(name, values) if isinstance(values, dict) else "Any"
            return f"Mapping[str, {values}]" if is_input else f"dict[str, {values}]"
        return PRIMITIVES.get(kind, "Any") if kind else "Any"


def is_record(schema: Schema) -> bool:
    """Whether an object within another type has named fields. One that needs none of them and takes others is any mapping."""
    is_any = schema.get("additionalProperties") is True and not schema.get("required")
    return schema.get("type") == "object" and bool(schema.get("properties")) and not is_any


def suffix(variant: Schema, variants: list[Schema], alone: str) -> str:
    """Tells the records of a union apart in their names, by a constant or by a field that the others do not need."""
    if not is_record(variant) or sum(map(is_record, variants)) == 1:
        return alone if is_record(variant) else ""
    for value in variant["properties"].values():
        if "const" in value:
            return pascal(value["const"])
    others = [other for other in variants if other is not variant and is_record(other)]
    own = [key for key in variant["required"] if all(key not in other["required"] for other in others)]
    return pascal((own or variant["required"])[-1])


def union(types: Any) -> str:
    """A union without repetitions. Its literals are one `Literal`, and None is last."""
    parts: list[str] = []
    for type in types:
        parts += [part for part in type.split(" | ") if part not in parts] if "[" not in type else [type] * (type not in parts)
    literals = [part[8:-1] for part in parts if re.fullmatch(r"Literal\[[^\[\]]*\]", part)]
    rest = [part for part in parts if part[8:-1] not in literals or not part.startswith("Literal[")]
    parts = ([f"Literal[{', '.join(literals)}]"] if literals else []) + rest
    return " | ".join(sorted(parts, key=lambda part: part == "None"))


def pascal(text: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", text))


def doc(schema: Schema, indent: int = 0) -> str:
    """The description as a docstring, below a class, a field or an alias."""
    text = " ".join(schema.get("description", "").split())
    if not text:
        return ""
    lines = textwrap.wrap(text, 116 - indent)
    end = "" if len(lines) == 1 else "\n"
    return textwrap.indent('"""' + "\n".join(lines) + end + '"""\n', " " * indent).replace("\\", "\\\\")


def overloads(requests: dict[str, Schema], head: str) -> str:
    """A callable that knows the params and the result of each method."""
    parts = []
    for method, about in requests.items():
        params = about["params"]["$ref"].rsplit("/", 1)[1]
        result = "None" if about["result"].get("type") == "null" else about["result"]["$ref"].rsplit("/", 1)[1]
        given = f", **params: Unpack[{params}]" if params != "Nothing" else ""
        parts.append(f'    @overload\n    {head}(\n        self, method: Literal["{method}"], /, *, timeout: float | None = None{given}\n'
                     f"    ) -> {result}:\n{doc(about, 8)}        ...\n")
    return "\n".join(parts)


def listeners(notifications: dict[str, str]) -> str:
    return "\n".join(f'    @overload\n    def __call__(\n        self, notification: Literal["{name}"], listener: Callable[[{params}], object], /\n'
                     "    ) -> Callable[[], None]: ...\n" for name, params in notifications.items())


RECONNECTED = '''
@final
class ReopenedSession(TypedDict):
    """A session that was open when the daemon exited."""

    sessionId: SessionId
    """Id of the session."""
    status: Literal["ok", "expired", "lost"]
    """`ok`: no event is missing. `expired`: events are missing; read the session. `lost`: the session is not open."""
    error: NotRequired[str]
    """Reason why the session is not open."""


@final
class Reconnected(TypedDict):
    """Params of the client's own notification `reconnected`: the daemon exited and was started again."""

    sessions: list[ReopenedSession]
    """The sessions that were open, each with its status."""
'''


def module() -> str:
    schema = json.loads((PROTOCOL / "schema.json").read_text())
    openrpc = json.loads((PROTOCOL / "openrpc.json").read_text())
    names = {name: about["properties"] for name, about in schema["properties"].items() if "properties" in about}
    summaries = {method["name"]: method["summary"] for method in openrpc["methods"]}
    # The client itself opens and ends the connection.
    own = ("initialize", "shutdown")
    requests = {name: names[name] | {"description": text} for name, text in summaries.items()
                if "result" in names[name] and name not in own}
    inputs = {about["params"]["$ref"].rsplit("/", 1)[1] for about in requests.values()}
    for name in inputs:
        if taken := {"timeout", "self"} & schema["$defs"][name].get("properties", {}).keys():
            raise SystemExit(f"{name} has a field {taken}, which is an argument of call()")
    made = Module(schema["$defs"], inputs)
    hooks, callbacks = [], {}
    for request in openrpc["x-client-requests"]:
        params, result = (request[part]["$ref"].rsplit("/", 1)[1] for part in ("params", "result"))
        if request["name"].startswith("hook/"):
            callback = f"Callable[[{params}], Answer[{result} | None]]"
            hooks.append(f"    {request['name'][5:]}: {callback}\n{doc({'description': request['summary']}, 4)}")
        else:
            name = {"tool/call": "ToolCallback", "llm/complete": "LlmCallback"}[request["name"]]
            callbacks[name] = f"{name}: TypeAlias = Callable[[{params}], Answer[{result}]]\n{doc({'description': request['summary']})}"
    notifications = {one["name"]: one["params"]["$ref"].rsplit("/", 1)[1] for one in openrpc["x-notifications"]}
    sections = [
        HEAD.rstrip(),
        *(text.rstrip() for text in made.classes.values()),
        RECONNECTED.strip(),
        "\n".join(text.rstrip() for text in made.aliases.values()),
        'T = TypeVar("T")\nAnswer: TypeAlias = Awaitable[T] | T\n"""A callback is a coroutine function, or a function, which runs in a thread."""\n'
        + "\n".join(text.rstrip() for text in callbacks.values()),
        "class Hooks(TypedDict, total=False):\n    \"\"\"The hooks that a client answers.\"\"\"\n\n" + "".join(hooks).rstrip(),
        "class Call(Protocol):\n    \"\"\"Sends a request and returns its result, as a coroutine.\"\"\"\n\n"
        + overloads(requests, "async def __call__").rstrip(),
        "class SyncCall(Protocol):\n    \"\"\"Sends a request and returns its result.\"\"\"\n\n" + overloads(requests, "def __call__").rstrip(),
        "class On(Protocol):\n    \"\"\"Registers a listener and returns a function that removes it.\"\"\"\n\n"
        + listeners(notifications | {"reconnected": "Reconnected"}).rstrip(),
    ]
    return "\n\n\n".join(sections) + "\n"


if __name__ == "__main__":
    text = module()
    if "--check" not in sys.argv:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        sys.exit(f"{TARGET} differs from the protocol; run: python {sys.argv[0]}")
