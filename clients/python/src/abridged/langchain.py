"""Keeps a LangChain agent inside the context window of its model:

    agent = create_agent(model, tools, middleware=[AbridgedMiddleware(context_window=128_000)])

The messages in the agent's state stay whole. A request to the model has a summary of the older ones, and the newer ones themselves.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, cast

from langchain.agents.middleware.types import AgentMiddleware, AgentState, ExtendedModelResponse, ModelRequest, ModelResponse, PrivateStateAttr
from langchain_core.exceptions import ContextOverflowError, ModelInvalidRequestError
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command
from typing_extensions import NotRequired, TypedDict

from .shared import afit, fit

if TYPE_CHECKING:
    from .types import FitAnswer, FitParams, SettingsInput

logger = logging.getLogger("abridged")

Response = ModelResponse[Any] | ExtendedModelResponse[Any]
Block = dict[str, Any]

OVERFLOW = re.compile(r"context[ _](length|window|size)|(prompt|input|request) is too long|too many (input )?tokens|tokens exceed", re.IGNORECASE)
CONVERSATIONS = 256
"""Conversations whose newest summary is in memory."""
TRIES = 4
"""Further tries after refusals as too long."""
SMALLEST_WINDOW = 2048
DEFAULT_WINDOW = 32_768
REQUEST_SHARE = 8
"""The part of the window, as 1/n, up to which a request of the user stays in full."""


class Condensed(TypedDict):
    """The older part of a conversation, in the state of the agent. A checkpointer stores it."""

    summary: str
    """The summary. The next one continues it."""
    shown: str
    """Text of the message that shows it to the model."""
    through: str
    """Id of the last message that it stands for."""
    request: str | None
    """Id of the newest request of the user among these messages, which the model still gets itself."""


class AbridgedState(AgentState[Any]):
    """The state of an agent with the middleware."""

    abridged: NotRequired[Annotated[Condensed | None, PrivateStateAttr]]


class AbridgedMiddleware(AgentMiddleware[AbridgedState, Any, Any]):
    """Fits the messages of each request into the window of the model.

    It wraps the call of the model, and does not edit the messages of the state before it: only the request has the system prompt
    and the tools, which need room too, and the history of the user stays whole.
    """

    state_schema = AbridgedState

    def __init__(
        self,
        context_window: int | None = None,
        max_output_tokens: int | None = None,
        keep_recent_tokens: int | None = None,
        binary: str | None = None,
        on_error: Callable[[Exception], None] | None = None,
        *,
        settings: SettingsInput | None = None,
        timeout: float = 300,
    ) -> None:
        """`context_window` and `max_output_tokens`: sizes of the model in tokens. Default: those of the model's profile.
        `keep_recent_tokens`: size of the newest messages that a compaction keeps. Default: chosen by the daemon.
        `binary`: the program. Default: as of `abridged.connect`.
        `on_error`: called with each error, after which the request has the summary so far. Default: one warning.
        `settings`: settings of the daemon, for example the models that write summaries.
        `timeout`: seconds for a summary.
        """
        super().__init__()
        self.context_window, self.max_output_tokens = context_window, max_output_tokens
        self.on_error, self._has_warned = on_error, False
        if keep_recent_tokens is not None:
            # The param of the same name compacts messages that fit, too.
            settings = settings or {}
            settings = {**settings, "compaction": {**settings.get("compaction", {}), "keepRecentTokens": keep_recent_tokens}}
        self._options: dict[str, Any] = {"binary": binary, "settings": settings, "timeout": timeout}
        # The state does not get the summary of a request that failed, and its repetition must not pay for another one.
        self._newest: OrderedDict[str | None, Condensed] = OrderedDict()

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]) -> Response:
        fitting = self._fitting(request)
        while True:
            try:
                self._take(fitting, fit(**self._options, **fitting.params()))
            except Exception as error:
                self._failed(error)
            try:
                return fitting.response(handler(fitting.request()))
            except Exception as error:
                if not (is_overflow(error) and fitting.shrink()):
                    raise

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Response:
        fitting = self._fitting(request)
        while True:
            try:
                self._take(fitting, await afit(**self._options, **fitting.params()))
            except Exception as error:
                self._failed(error)
            try:
                return fitting.response(await handler(fitting.request()))
            except Exception as error:
                if not (is_overflow(error) and fitting.shrink()):
                    raise

    def _fitting(self, request: ModelRequest[Any]) -> Fitting:
        profile = request.model.profile or {}
        window = self.context_window or profile.get("max_input_tokens")
        longest = self.max_output_tokens or profile.get("max_output_tokens")
        return Fitting(request, self._newest.get(conversation(request)), window, longest)

    def _take(self, fitting: Fitting, answer: FitAnswer) -> None:
        if made := fitting.take(answer):
            self._newest[conversation(fitting.original)] = made
            if len(self._newest) > CONVERSATIONS:
                self._newest.popitem(last=False)

    def _failed(self, error: Exception) -> None:
        if self.on_error:
            self.on_error(error)
        elif not self._has_warned:
            self._has_warned = True
            logger.warning("the messages of the agent are not fitted into its window: %s", error)


class Fitting:
    """One request to the model: the messages that were given, and those that are sent."""

    def __init__(self, request: ModelRequest[Any], newest: Condensed | None, window: int | None, longest: int | None) -> None:
        self.original, self._window, self._longest = request, window, longest
        messages = request.messages
        lead = next((at for at, message in enumerate(messages) if not isinstance(message, SystemMessage)), len(messages))
        self._lead, self._history = messages[:lead], messages[lead:]
        self._places = {message.id: at for at, message in enumerate(self._history) if message.id}
        # A summary holds as long as the messages that it stands for are there. Of two, the later one is the newer one.
        stored = cast(AbridgedState, request.state).get("abridged")
        found = [one for one in (stored, newest) if one and one["through"] in self._places]
        self.condensed: Condensed | None = max(found, key=lambda one: self._places[one["through"]], default=None)
        self._rest = self._after(self.condensed)
        self._sent = [*([HumanMessage(self.condensed["shown"])] if self.condensed else []), *self._rest]
        self._forms: list[Block] = []
        self._size, self._tries = 0, 0

    def params(self) -> FitParams:
        """The params of `context/fit`."""
        self._forms = [given(message) for message in self._rest]
        system = [message.text for message in (self.original.system_message, *self._lead) if message]
        tools = [convert_to_openai_tool(tool) for tool in self.original.tools]
        return {
            "messages": self._forms,
            "format": "messages",
            "system": "\n\n".join(system) or None,
            # The tools that a provider runs itself have no schema.
            "tools": [tool for tool in tools if tool.get("type") == "function"] or None,
            "contextWindow": self._window,
            "maxOutputTokens": self._longest,
            "previousSummary": self.condensed["summary"] if self.condensed else None,
        }

    def take(self, answer: FitAnswer) -> Condensed | None:
        """Takes the messages of an answer. Returns the summary if it is a new one."""
        cut, messages = answer["firstKeptIndex"], cast("list[Block]", answer["messages"])
        old, kept, forms = self._rest[:cut], self._rest[cut:], self._forms[cut:]
        front, rest = messages[: len(messages) - len(kept)], messages[len(messages) - len(kept) :]
        if [message["role"] for message in rest] != [form["role"] for form in forms]:
            raise ValueError("a tool result has no call; a middleware before this one has removed the message with the call")
        shown = [HumanMessage(langchain(message["content"])) for message in front]
        self._sent = [*shown, *map(shortened, kept, forms, rest)]
        self._size = answer["tokensAfter"]
        through, request = self._marks(old, kept)
        if answer["summary"] is None or through is None:
            return None
        self.condensed = {
            "summary": answer["summary"], "shown": "\n\n".join(message.text for message in shown), "through": through, "request": request,
        }
        self._rest = self._after(self.condensed)
        return self.condensed

    def request(self) -> ModelRequest[Any]:
        return self.original.override(messages=[*self._lead, *self._sent])

    def response(self, response: ModelResponse[Any]) -> Response:
        """The response, with a summary that the state does not have."""
        if self.condensed is None or self.condensed == self.original.state.get("abridged"):
            return response
        return ExtendedModelResponse(model_response=response, command=Command(update={"abridged": self.condensed}))

    def shrink(self) -> bool:
        """Halves the window after a refusal as too long: it is smaller than it is said to be. Returns whether a try is left."""
        self._tries += 1
        self._window, self._size = self._size // 2, 0
        return self._tries <= TRIES and self._window >= SMALLEST_WINDOW

    def _after(self, condensed: Condensed | None) -> list[AnyMessage]:
        """The messages after a summary. The user's newest request before them comes first, in full."""
        if condensed is None:
            return self._history
        request = [message for message in self._history if message.id == condensed["request"]] if condensed["request"] else []
        return request + self._history[self._places[condensed["through"]] + 1 :]

    def _marks(self, old: list[AnyMessage], kept: list[AnyMessage]) -> tuple[str | None, str | None]:
        """The ids of the last message that a summary stands for, and of the request that stays."""
        if not old:
            return None, None
        if self.condensed and old[-1].id == self.condensed["request"]:
            # Only the request had to go.
            return self.condensed["through"], None
        largest = (self._window or DEFAULT_WINDOW) // REQUEST_SHARE * 4
        requests = [message.id for message in old if isinstance(message, HumanMessage) and len(message.text) <= largest]
        has_request = any(isinstance(message, HumanMessage) for message in kept)
        return old[-1].id, requests[-1] if requests and not has_request else None


def is_overflow(error: Exception) -> bool:
    """Whether a model refused a request as too long. LangChain knows the words of some providers."""
    return isinstance(error, ContextOverflowError) or isinstance(error, ModelInvalidRequestError) and bool(OVERFLOW.search(str(error)))


def conversation(request: ModelRequest[Any]) -> str | None:
    """Tells conversations apart: the id of the first message."""
    return request.messages[0].id if request.messages else None


def given(message: AnyMessage) -> Block:
    """A message in the form of the daemon. The daemon counts and summarizes it; the model gets the message itself."""
    blocks = [block for part in message.content_blocks if (block := given_block(dict(part)))]
    if isinstance(message, ToolMessage):
        return {"role": "toolResult", "toolCallId": message.tool_call_id, "toolName": message.name or "", "content": blocks,
                "isError": message.status == "error"}
    if isinstance(message, AIMessage):
        calls = [*message.tool_calls, *message.invalid_tool_calls]
        blocks += [{"type": "toolCall", "id": call["id"] or "", "name": call["name"] or "", "arguments": call["args"]} for call in calls]
        return {"role": "assistant", "content": blocks}
    return {"role": "user", "content": blocks}


def given_block(block: Block) -> Block | None:
    kind = block["type"]
    if kind == "text":
        return {"type": "text", "text": block["text"]}
    if kind == "reasoning":
        return {"type": "thinking", "thinking": block.get("reasoning", "")}
    if kind == "image" and block.get("base64"):
        return {"type": "image", "data": block["base64"], "mimeType": block.get("mime_type", "image/png")}
    if kind in ("tool_call", "tool_call_chunk", "invalid_tool_call"):
        return None
    return {"type": "text", "text": f"[{kind} {block.get('url') or block.get('mime_type') or ''}]"}


def langchain(blocks: list[Block]) -> str | list[str | Block]:
    """The content of a message of the daemon."""
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return [
        {"type": "image", "base64": block["data"], "mime_type": block["mimeType"]} if block["type"] == "image" else block
        for block in blocks
    ]


def shortened(message: AnyMessage, form: Block, fitted: Block) -> AnyMessage:
    """The message itself, or a copy with the content that the daemon has shortened. An answer of the model stays as it is."""
    if isinstance(message, AIMessage) or fitted["content"] == form["content"]:
        return message
    return message.model_copy(update={"content": langchain(fitted["content"])})
