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


@final
class InitializeParams(TypedDict):
    """Params of `initialize`."""

    protocolVersion: NotRequired[int | None]
    """Protocol version of the client. Default: 1."""
    clientInfo: NotRequired[ClientInfo | None]
    """Name and version of the client."""
    processId: NotRequired[int | None]
    """Process of the client. The daemon ends when this process has ended."""
    capabilities: NotRequired[ClientCapabilities | None]
    """Capabilities of the client."""


@final
class ClientInfo(TypedDict):
    """Name and version of a client."""

    name: NotRequired[str]
    """Name of the client."""
    version: NotRequired[str]
    """Version of the client."""
    title: NotRequired[str | None]
    """Name for display."""


@final
class ClientCapabilities(TypedDict):
    """Capabilities of a client."""

    hooks: NotRequired[HookRegistration | None]
    """Hooks that the client answers, as by `hooks/set` without `sessionIds`. A wrong part is left out, with a
    `notice`.
    """
    tools: NotRequired[AnyObject | None]
    """The client executes tools."""
    llm: NotRequired[AnyObject | None]
    """The client runs model requests."""
    modelSwitch: NotRequired[AnyObject | None]
    """The client asks the model that a context names."""
    sessionReplaced: NotRequired[AnyObject | None]
    """The client goes on with the session that `session_replaced` names. Automatic maintenance may hand off then."""
    events: NotRequired[EventCapabilities | None]
    """Selection of events."""


@final
class HookRegistration(TypedDict):
    """Hooks that a client answers."""

    events: NotRequired[list[HookEvent]]
    """The hooks. An empty list: none."""
    timeoutMs: NotRequired[HookTimeout | None]
    """Time for an answer. Default: 30,000."""
    onFailure: NotRequired[OnFailure | None]
    """After a hook that failed. Default: `continue`."""


@final
class EventCapabilities(TypedDict):
    """Selection of events."""

    optOut: NotRequired[list[str]]
    """Event types that are not sent."""


@final
class InitializeAnswer(TypedDict):
    """Result of `initialize`."""

    protocolVersion: int
    """Protocol version of the connection."""
    serverInfo: ServerInfo
    """Name and version of the daemon."""
    capabilities: ServerCapabilities
    """Capabilities of the daemon."""
    limits: Limits
    """Limits of the connection."""
    epoch: str
    """Id of this run of the daemon. Event numbers are unique within it."""
    dataDir: str
    """Data folder, which holds the sessions."""


@final
class ServerInfo(TypedDict):
    """Name and version of the daemon."""

    name: str
    """Always `abridged`."""
    version: str
    """Version of the program."""


@final
class ServerCapabilities(TypedDict):
    """Capabilities of the daemon."""

    methods: list[str]
    """Methods that the daemon answers."""
    contextFormats: list[str]
    """Formats of `session/context`."""
    compactionMethods: list[str]
    """Methods of a summary."""


@final
class Limits(TypedDict):
    """Limits of the connection."""

    maxInboundFrameBytes: int
    """Largest frame that is read, in bytes. A larger frame is skipped."""
    softOutboundFrameBytes: int
    """Size below which events and notifications stay, in bytes."""
    maxInFlightRequests: int
    """Largest number of requests in flight. Further requests are refused."""
    maxBatchRequests: int
    """Largest number of members in a batch. A larger batch is refused whole."""


@final
class NewParams(TypedDict):
    """Params of `session/new`."""

    cwd: str
    """Working folder of the session; an absolute path."""
    title: NotRequired[str | None]
    """Title of the session."""
    model: NotRequired[ModelRefInput | None]
    """Model of the session. Default: the setting `defaultModel`."""
    thinkingLevel: NotRequired[ThinkingLevel | None]
    """Thinking level of the model."""
    systemPrompt: NotRequired[str | None]
    """System prompt."""
    tools: NotRequired[Tools | None]
    """Tools of the model."""
    parentSession: NotRequired[str | None]
    """Path of the session that this session continues."""
    ephemeral: NotRequired[bool | None]
    """Keep the session in memory only."""
    settings: NotRequired[SettingsInput | None]
    """Settings of this session."""
    contextWindow: NotRequired[int | None]
    """Size of the window of the session's model, in tokens, in place of that in `models`."""
    maxOutputTokens: NotRequired[int | None]
    """The longest answer of the session's model, in tokens."""


@final
class ModelRefInputObject(TypedDict):
    """A provider's model."""

    provider: str
    id: str


@final
class SettingsInput(TypedDict):
    """All settings with their defaults. Token counts are in tokens, times in the unit their name ends with.
    `x-project` is the range of a number in the file of a project that is not trusted. Where −1 stands for none, it
    is allowed there, too. With `x-outOfRange: "clamped"` the nearest number of the range is used; any other number
    outside of its range is not used.
    """

    defaultModel: NotRequired[str | None]
    """`"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be
    asked.
    """
    models: NotRequired[list[ModelSettingsInput]]
    """The models."""
    compaction: NotRequired[CompactionSettingsInput]
    """Compaction of sessions."""
    prune: NotRequired[PruneSettingsInput]
    """Pruning of old tool results."""
    tools: NotRequired[ToolSettingsInput]
    """The tools of agents."""
    branchSummary: NotRequired[BranchSummarySettingsInput]
    """Summaries of branches that are left."""
    contextPromotion: NotRequired[PromotionSettingsInput]
    """Promotion to a larger model instead of a compaction."""
    retry: NotRequired[RetrySettingsInput]
    """Retries of transient errors."""
    redaction: NotRequired[RedactionSettingsInput]
    """Redaction of secrets in summaries."""
    tokens: NotRequired[TokenSettingsInput]
    """Estimation of tokens."""
    trustedProjects: NotRequired[list[str]]
    """Folders whose project settings are trusted."""
    store: NotRequired[Secret | None]
    """The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the
    daemon starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
    """
    storePasswordCommand: NotRequired[list[str] | None]
    """A command whose first line of output is the password of the store: the program, then its arguments. No shell
    reads it. It runs for each connection.
    """


@final
class ModelSettingsInput(TypedDict):
    """One model."""

    provider: NotRequired[str]
    """The provider's name."""
    id: NotRequired[str]
    """The model's name at that provider."""
    api: NotRequired[Api | None]
    """The wire format."""
    baseUrl: NotRequired[str | None]
    """The base URL, in the form that the provider's own SDK takes."""
    apiKeyEnv: NotRequired[str | None]
    """The environment variable with the key."""
    apiKeyCommand: NotRequired[list[str] | None]
    """A command whose first line of output is the key: the program, then its arguments. No shell reads it."""
    headers: NotRequired[dict[str, Secret]]
    """Headers of every request, by name, for proxies. The values are secret."""
    contextWindow: NotRequired[int | None]
    """Size of the window, in tokens."""
    maxOutputTokens: NotRequired[int | None]
    """The longest answer, in tokens."""
    reasoning: NotRequired[bool | None]
    """True for a model that thinks before it answers. Default: the value of the catalog."""
    nativeCompaction: NotRequired[bool | None]
    """Whether its provider compacts its conversations on demand (Anthropic) or by itself (OpenAI). Default: the answer
    of the provider, for the providers `anthropic` and `openai` alone.
    """
    promoteTo: NotRequired[str | None]
    """`"provider/id"` of the larger model for `contextPromotion`."""
    cost: NotRequired[ModelCost | None]
    """Its prices. Default: those of the catalog."""
    compaction: NotRequired[CompactionPatch | None]
    """Overrides of `compaction` for this model."""


@final
class ModelCost(TypedDict):
    """Prices of a model, in dollars per million tokens."""

    input: float
    """Input that is not cached."""
    output: float
    """Output."""
    cacheRead: NotRequired[float | None]
    """Input that is read from the prompt cache. Default: a tenth of `input`."""
    cacheWrite: NotRequired[float | None]
    """Input that is written to the prompt cache. Default: 1.25 × `input` for Anthropic's API, else `input`."""


@final
class CompactionPatch(TypedDict):
    """Keys of `compaction` that differ for one model."""

    enabled: NotRequired[bool]
    """Compacts automatically."""
    strategy: NotRequired[Strategy]
    """The action at the threshold."""
    reserveTokens: NotRequired[int | None]
    """Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller
    window.
    """
    keepRecentTokens: NotRequired[int]
    """Tokens of the newest messages that stay as they are; 0 keeps none."""
    thresholdPercent: NotRequired[int]
    """Threshold in percent of the window; −1: none."""
    thresholdTokens: NotRequired[int]
    """Threshold in tokens; −1: none."""
    autoContinue: NotRequired[bool]
    """Continues a daemon-driven session after a compaction."""
    midTurn: NotRequired[bool]
    """Allows a compaction between the tool calls of a turn."""
    remoteEnabled: NotRequired[bool]
    """Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also
    allows that of another provider whose models are asked by `openai_responses`.
    """
    remoteEndpoint: NotRequired[str | None]
    """URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}`
    answers it. It is asked before the models and gets no key.
    """
    idleEnabled: NotRequired[bool]
    """Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an
    answer that reports cached tokens.
    """
    idleThresholdTokens: NotRequired[int]
    """The smallest context that is compacted while the user is away, in tokens."""
    idleTimeoutSeconds: NotRequired[int]
    """Time without activity after which the user counts as away, in seconds."""
    speculative: NotRequired[Speculative]
    """Drafts summaries ahead."""
    stallSeconds: NotRequired[int]
    """Time without progress of an answer after which the next candidate is asked, in seconds."""
    deadlineSeconds: NotRequired[int]
    """The longest automatic maintenance, in seconds."""
    maxConcurrent: NotRequired[int]
    """The most summaries at the same time, over all sessions."""
    maxTokensPerHour: NotRequired[int]
    """The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries
    are extracted without a model. The file of a project can only make it smaller.
    """
    models: NotRequired[list[str]]
    """`"provider/id"` of each summarizer, in order."""
    style: NotRequired[Style]
    """The layout of a compacted context."""
    transcriptHint: NotRequired[bool]
    """Ends the frame of a summary with a line that names the file of the session, where the whole conversation is."""
    rehydrate: NotRequired[bool]
    """Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and
    instructions that the agent loaded in the summarized part. Those that stood in tool results stay in the context:
    at most 5,000 tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
    """
    coldResume: NotRequired[ColdResumption]
    """The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose
    context is over `coldResumeTokens`.
    """
    coldResumeTokens: NotRequired[int]
    """Size over which a context with a cold cache is large, in tokens; −1: half of the threshold."""


@final
class CompactionSettingsInput(TypedDict):
    """Compaction of sessions."""

    enabled: NotRequired[bool]
    """Compacts automatically."""
    strategy: NotRequired[Strategy]
    """The action at the threshold."""
    reserveTokens: NotRequired[int | None]
    """Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller
    window.
    """
    keepRecentTokens: NotRequired[int]
    """Tokens of the newest messages that stay as they are; 0 keeps none."""
    thresholdPercent: NotRequired[int]
    """Threshold in percent of the window; −1: none."""
    thresholdTokens: NotRequired[int]
    """Threshold in tokens; −1: none."""
    autoContinue: NotRequired[bool]
    """Continues a daemon-driven session after a compaction."""
    midTurn: NotRequired[bool]
    """Allows a compaction between the tool calls of a turn."""
    remoteEnabled: NotRequired[bool]
    """Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also
    allows that of another provider whose models are asked by `openai_responses`.
    """
    remoteEndpoint: NotRequired[str | None]
    """URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}`
    answers it. It is asked before the models and gets no key.
    """
    idleEnabled: NotRequired[bool]
    """Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an
    answer that reports cached tokens.
    """
    idleThresholdTokens: NotRequired[int]
    """The smallest context that is compacted while the user is away, in tokens."""
    idleTimeoutSeconds: NotRequired[int]
    """Time without activity after which the user counts as away, in seconds."""
    speculative: NotRequired[Speculative]
    """Drafts summaries ahead."""
    stallSeconds: NotRequired[int]
    """Time without progress of an answer after which the next candidate is asked, in seconds."""
    deadlineSeconds: NotRequired[int]
    """The longest automatic maintenance, in seconds."""
    maxConcurrent: NotRequired[int]
    """The most summaries at the same time, over all sessions."""
    maxTokensPerHour: NotRequired[int]
    """The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries
    are extracted without a model. The file of a project can only make it smaller.
    """
    models: NotRequired[list[str]]
    """`"provider/id"` of each summarizer, in order."""
    style: NotRequired[Style]
    """The layout of a compacted context."""
    transcriptHint: NotRequired[bool]
    """Ends the frame of a summary with a line that names the file of the session, where the whole conversation is."""
    rehydrate: NotRequired[bool]
    """Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and
    instructions that the agent loaded in the summarized part. Those that stood in tool results stay in the context:
    at most 5,000 tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
    """
    coldResume: NotRequired[ColdResumption]
    """The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose
    context is over `coldResumeTokens`.
    """
    coldResumeTokens: NotRequired[int]
    """Size over which a context with a cold cache is large, in tokens; −1: half of the threshold."""


@final
class PruneSettingsInput(TypedDict):
    """Pruning of old tool results."""

    protectTokens: NotRequired[int]
    """Tokens of the newest results that stay."""
    minimumSavings: NotRequired[int]
    """The least tokens for which results are pruned."""
    protectedTools: NotRequired[list[str]]
    """Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that
    reads a file (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`,
    …). A read of a file that a newer one repeats is pruned all the same.
    """
    cacheSeconds: NotRequired[int]
    """Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and at
    least as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
    """


@final
class ToolSettingsInput(TypedDict):
    """The tools of agents."""

    files: NotRequired[list[FileTool]]
    """Tools that touch files. They come before the built-in ones of common agents."""
    todo: NotRequired[list[str]]
    """Tools that hold the todo list. They come before the built-in ones."""
    skills: NotRequired[list[str]]
    """Tools that load a skill, beside the built-in ones."""


@final
class FileTool(TypedDict):
    """A tool that touches a file."""

    tool: str
    """The tool's name."""
    argument: str
    """The argument with the path."""
    operation: FileOperation
    """The operation on the file."""


@final
class BranchSummarySettingsInput(TypedDict):
    """Summaries of branches that are left."""

    enabled: NotRequired[bool]
    """The default of `summarize`."""
    reserveTokens: NotRequired[int]
    """Tokens that stay free in the summarizer's window."""


@final
class PromotionSettingsInput(TypedDict):
    """Promotion to a larger model instead of a compaction."""

    enabled: NotRequired[bool]
    """Switches it on."""


@final
class RetrySettingsInput(TypedDict):
    """Retries of transient errors."""

    enabled: NotRequired[bool]
    """Switches it on."""
    maxRetries: NotRequired[int]
    """The most retries of a request."""
    baseDelayMs: NotRequired[int]
    """The first delay, in milliseconds."""
    maxDelayMs: NotRequired[int]
    """The longest delay, in milliseconds."""


@final
class RedactionSettingsInput(TypedDict):
    """Redaction of secrets in summaries."""

    enabled: NotRequired[bool]
    """Switches it on."""


@final
class TokenSettingsInput(TypedDict):
    """Estimation of tokens."""

    estimator: NotRequired[EstimatorSetting]
    """The estimator."""
    learnWindow: NotRequired[bool]
    """Learns the window that a provider names in an error."""


@final
class SessionAnswer(TypedDict):
    """Result of methods that return one session."""

    session: SessionInfo
    """The session."""


@final
class SessionInfo(TypedDict):
    """State of a session."""

    sessionId: SessionId
    """Id of the session."""
    path: str | None
    """Path of the file; null for an ephemeral session."""
    cwd: str
    """Working folder."""
    title: str | None
    """Title."""
    createdAt: str
    """Time at which the session was created."""
    updatedAt: str
    """Time of the last change."""
    parentSession: str | None
    """Path of the session that this session continues."""
    leafEntryId: EntryId | None
    """Entry at the end of the active path; the parent of the next entry."""
    entryCount: int | None
    """Number of entries; null until the file is indexed."""
    model: ModelRef | None
    """Model of the session."""
    thinkingLevel: str
    """Thinking level of the model."""
    status: Status
    """Activity of the session."""
    usage: Usage
    """Fullness of the context."""


@final
class ModelRef(TypedDict):
    """A provider's model."""

    provider: str
    id: str


@final
class Status(TypedDict):
    """Activity of a session."""

    type: StatusKind
    """Kind of activity."""
    operationId: NotRequired[OperationId | None]
    """Id of the running operation."""
    reason: NotRequired[str | None]
    """Reason of the running operation."""


@final
class Usage(TypedDict):
    """Fullness of a context."""

    contextTokens: int
    """Size of the context."""
    contextWindow: int | None
    """Size of the model's window."""
    percent: float | None
    """Size of the context in percent of the window; may exceed 100."""
    thresholdTokens: int | None
    """Size above which the context is compacted."""
    reserveTokens: int
    """Room that is reserved for the next answer."""
    source: UsageSource
    """Source of `contextTokens`."""
    autoCompaction: AutoCompaction
    """Whether automatic compaction is on. `"resting"`: it is, and a compaction was undone, so it acts when the context
    is near its window.
    """
    windowSource: str
    """Source of `contextWindow`: `setting`, `learned`, `catalog` or `default`."""
    canUndo: bool
    """Whether `session/undo_compaction` has a compaction or a reset to undo."""
    breakdown: Breakdown
    """Estimated share of each part of the context."""
    estimator: str
    """Estimator of the estimated part: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good."""
    coldResume: NotRequired[ColdResume | None]
    """Costs of the next request where the prompt cache is cold by the age of the newest report and the context is over
    `compaction.coldResumeTokens`. Only in the answers of `session/usage`, `session/load` and `session/status`.
    """


@final
class Breakdown(TypedDict):
    """Estimated share of each part of a context."""

    system: int
    """System prompt."""
    tools: int
    """Tools."""
    summary: int
    """Summary."""
    messages: int
    """Messages."""


@final
class ColdResume(TypedDict):
    """The cost of the next request of a session whose prompt cache is cold. Costs are in dollars, and absent where no
    price is known or the model is free. They are those of input: the answer costs the same in any case.
    """

    ageSeconds: int
    """Age of the newest answer, in seconds."""
    cacheSeconds: int
    """The longest time for which the provider keeps a prompt, in seconds."""
    tokens: int
    """Size of the context, which the next request sends anew."""
    tokensAfter: int
    """Estimated size of the context after a compaction."""
    cost: NotRequired[float | None]
    """Cost of the context in the next request."""
    costAfter: NotRequired[float | None]
    """Cost of the context in the next request after a compaction."""
    compactionCost: NotRequired[float | None]
    """Cost of the compaction, if the model of the session writes the summary."""


@final
class LoadParams(TypedDict):
    """Params of `session/load`: one of `sessionId` and `path`."""

    sessionId: NotRequired[SessionId | None]
    """Id of a session in the data folder."""
    path: NotRequired[str | None]
    """Path of a session file."""
    readOnly: NotRequired[bool | None]
    """Open without a lock and without the right to write."""
    model: NotRequired[ModelRefInput | None]
    """Model of the session from here on."""
    systemPrompt: NotRequired[str | None]
    """System prompt."""
    tools: NotRequired[Tools | None]
    """Tools of the model."""
    settings: NotRequired[SettingsInput | None]
    """Settings of this session."""
    contextWindow: NotRequired[int | None]
    """Size of the window of the session's model, in tokens, in place of that in `models`."""
    maxOutputTokens: NotRequired[int | None]
    """The longest answer of the session's model, in tokens."""


@final
class LoadAnswer(TypedDict):
    """Result of `session/load`."""

    session: SessionInfo
    """The session."""
    indexed: bool
    """Whether the whole file is indexed already."""
    repairs: list[Repair]
    """Faults found in the file, each with the way it was handled."""


@final
class Repair(TypedDict):
    """A fault in a session file and the way it was handled."""

    kind: str
    """Kind of the fault, for example `torn_tail` or `corrupt_line`."""
    line: NotRequired[int | None]
    """Line number, counted from 1, for a fault of one line."""
    detail: str
    """Fault and handling, for a person."""


@final
class ImportParams(TypedDict):
    """Params of `session/import`."""

    path: str
    """Path of the session of another agent: of its file, or of OpenCode's database with `#` and the id of the session."""
    cwd: NotRequired[str | None]
    """Working folder of the session; an absolute path. Default: the one in the file."""
    title: NotRequired[str | None]
    """Title of the session. Default: the one in the file."""


@final
class ImportAnswer(TypedDict):
    """Result of `session/import`."""

    session: SessionInfo
    """The new session. It is open, and the client is subscribed to its events."""
    origin: Origin
    """The origin of the session."""
    repairs: list[Repair]
    """Parts of the file that are in no entry, by their kind."""


@final
class Origin(TypedDict):
    """The session of another agent that a session was made of."""

    agent: Agent
    """The agent that wrote it."""
    sessionId: str
    """Its id in that agent."""
    version: NotRequired[str | None]
    """Version of the agent, where the file has it."""
    parentSessionId: NotRequired[str | None]
    """The session of the same agent that it was forked from."""
    gitBranch: NotRequired[str | None]
    """Branch of the project's git repository, where the file has it."""


@final
class ListParams(TypedDict):
    """Params of `session/list`."""

    cwd: NotRequired[str | None]
    """Only sessions with this working folder."""
    search: NotRequired[str | None]
    """Only sessions with this text in their title, folder or first message."""
    cursor: NotRequired[str | None]
    """`nextCursor` of the page before."""
    limit: NotRequired[int | None]
    """Largest number of sessions. Default: 100."""


@final
class ListAnswer(TypedDict):
    """Result of `session/list`."""

    sessions: list[ListedSession]
    """Sessions, newest first."""
    nextCursor: str | None
    """Cursor of the next page; null on the last page."""


@final
class ListedSession(TypedDict):
    """A session in a list."""

    sessionId: SessionId
    """Id of the session."""
    path: str
    """Path of the file."""
    cwd: str
    """Working folder."""
    parentSession: str | None
    """File of the session that it comes from, as its header names it; null where it comes from none. The id of that
    session where it had no file.
    """
    parentSessionId: SessionId | None
    """Id of the session that it comes from; null where it comes from none, or the name of its file does not tell it."""
    title: str | None
    """Title."""
    preview: str | None
    """Beginning of the first user message."""
    createdAt: str
    """Time at which the session was created."""
    updatedAt: str
    """Time of the last change."""
    entryCount: int | None
    """Number of entries; null until the daemon has indexed the file."""
    percent: float | None
    """Size of the context in percent of the window; null until the daemon has opened the session."""
    sizeBytes: int
    """Size of the file, in bytes."""
    status: Status | None
    """Activity; null for a session that is not open in this daemon."""


@final
class SessionParams(TypedDict):
    """Params of a method that needs the session alone."""

    sessionId: SessionId
    """Id of the session."""


@final
class StatusAnswer(TypedDict):
    """Result of `session/status`."""

    session: SessionInfo
    """The session."""
    queue: Queue
    """Queued messages."""
    operations: list[RunningOperation]
    """Operations that run."""
    waiting: list[WaitingOperation]
    """Compactions that wait for the end of the turn. The session is not busy because of them."""
    spent: Spent
    """Tokens that models took for work beside the turns."""
    summary: NotRequired[SummaryStatus | None]
    """The requests for the summary in force. Absent where no model was asked for it."""
    hooks: NotRequired[HooksInForce | None]
    """Hooks that the client answers for this session. Absent where there is none."""
    _meta: Any
    """Number of disk operations: `{writes, fsyncs}`."""


@final
class Queue(TypedDict):
    """Messages that wait to be sent to the model."""

    steering: list[Queued]
    """Messages for the next pause between two tool calls."""
    followUp: list[Queued]
    """Messages for the end of the turn."""


@final
class Queued(TypedDict):
    """A queued message."""

    id: str
    """Id of the message."""
    text: str
    """Text of the message."""


@final
class RunningOperation(TypedDict):
    """A running operation."""

    operationId: OperationId
    """Id of the operation."""
    kind: OperationName
    """Kind of the operation."""
    reason: str
    """Reason of the operation."""
    startedAt: str
    """Time of its start."""


@final
class WaitingOperation(TypedDict):
    """An operation that was asked for and waits for its start."""

    operationId: OperationId
    """Id of the operation. `session/cancel` takes it."""
    kind: str
    """Kind of the operation: `compaction`."""
    reason: str
    """Reason of the operation."""
    when: When
    """Event for which it waits."""
    since: str
    """Time of the request."""
    hasInstructions: bool
    """Whether it has instructions for the summary."""


@final
class Spent(TypedDict):
    """Requests and tokens that models took for work beside the turns of a session: summaries, retries and rejected
    answers included.
    """

    total: SpentSum
    """All requests."""
    purposes: dict[str, SpentSum]
    """Those by purpose, as `usage` entries name it."""
    automatic: SpentSum
    """Those of automatic maintenance, which no client asked for."""
    lastHour: SpentInHour
    """Automatic maintenance of the last hour."""
    atLeast: bool
    """Whether earlier requests may be missing, because the index is not ready."""


@final
class SpentSum(TypedDict):
    """A sum of requests."""

    requests: int
    """Number of requests that reported a cost."""
    input: int
    """Input that was not cached, in tokens."""
    output: int
    """Output, in tokens."""
    cacheRead: int
    """Input that a provider read from its cache, in tokens."""
    cacheWrite: int
    """Input that a provider wrote to its cache, in tokens."""
    totalTokens: int
    """All tokens."""
    dollars: float | None
    """Cost in dollars of the requests whose prices are known; null where none is."""
    unpriced: int
    """Number of requests whose prices are not known."""


@final
class SpentInHour(TypedDict):
    """Automatic maintenance of the last hour."""

    tokens: int
    """Tokens."""
    most: int | None
    """The most tokens, by `compaction.maxTokensPerHour`; null: no limit."""
    left: int | None
    """Tokens that are left; null: no limit."""


@final
class SummaryStatus(TypedDict):
    """The requests for the summary in force."""

    entryId: EntryId
    """Compaction of the summary."""
    form: SummaryForm | None
    """Form of the requests; null where no model wrote the summary, and for a provider's own compaction."""
    saved: Saved | None
    """Savings by the provider's cache; null where nothing was read from it."""


@final
class Saved(TypedDict):
    """Savings of requests by the provider's cache."""

    tokens: int
    """Input that was read from the cache, in tokens."""
    dollars: float | None
    """The difference to the price of the same input without a cache, in dollars; null where the prices of the model
    are not known.
    """


@final
class HooksInForce(TypedDict):
    """The hooks in force of a session."""

    events: list[HookEvent]
    """The hooks."""
    timeoutMs: int
    """Time for an answer, in milliseconds."""
    onFailure: OnFailure
    """After a hook that failed."""


@final
class AppendParams(TypedDict):
    """Params of `session/append`."""

    sessionId: SessionId
    """Id of the session."""
    messages: Sequence[GivenMessage]
    """Messages in the order in which they happened. In a provider's format: messages, items or contents of a request,
    and answers; a message with several tool results becomes several entries.
    """
    format: NotRequired[MessageFormat | None]
    """Format of the messages. Default: `messages`."""
    usage: NotRequired[GivenUsage | None]
    """Usage of the answer at the end of messages in a provider's format, in the fields of that provider."""
    stopReason: NotRequired[str | None]
    """Stop reason of that answer, as the provider states it; also `error` or `aborted`."""
    errorMessage: NotRequired[str | None]
    """The provider's error text; the answer failed. With no message, the answer is empty."""
    parentEntryId: NotRequired[EntryId | None]
    """Parent of the first entry. Default: the leaf; for a tool result whose call is on another branch, the end of that
    branch, and the leaf stays.
    """
    expectedLeafId: NotRequired[EntryId | None]
    """Expected leaf. The request fails if another message or compaction follows this entry."""
    contextId: NotRequired[str | None]
    """`contextId` of the context that the answer was made for. Default: the last context in a provider's format or
    with `wait`, else the path before the answer. A report of a context that was rewritten since counts for nothing.
    The context of another session is invalid, unless this one is a fork that has its entries.
    """


@final
class UserMessage(TypedDict):
    """A message of the user."""

    role: Literal["user"]
    """Role of the message."""
    content: str | list[Block]
    """A text, or blocks."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class TextBlock(TypedDict):
    """A text."""

    type: Literal["text"]
    """Type of the block."""
    text: str
    """The text."""
    textSignature: NotRequired[str | None]
    """Signature of its provider. The provider gets it back unchanged."""


@final
class ThinkingBlock(TypedDict):
    """Thinking of a model. With a signature its provider gets it back unchanged, or not at all."""

    type: Literal["thinking"]
    """Type of the block."""
    thinking: str
    """The text; empty where the provider hides it."""
    thinkingSignature: NotRequired[str | None]
    """Signature of its provider, or the hidden thinking."""
    redacted: NotRequired[bool | None]
    """Whether the signature holds the thinking, which is hidden."""


@final
class ToolCallBlock(TypedDict):
    """A call of a tool."""

    type: Literal["toolCall"]
    """Type of the block."""
    id: str
    """Id of the call. The result names it."""
    name: str
    """Name of the tool."""
    arguments: CallArguments
    """Arguments of the call."""
    thoughtSignature: NotRequired[str | None]
    """Signature of its provider. The provider gets it back unchanged."""


@final
class ImageBlock(TypedDict):
    """An image."""

    type: Literal["image"]
    """Type of the block."""
    data: str
    """The image, in base64."""
    mimeType: str
    """Its type, for example `image/png`."""


@final
class OtherBlock(TypedDict):
    """A block of a type that this version does not know. It is passed on."""

    type: str
    """Type of the block."""


@final
class AssistantMessage(TypedDict):
    """An answer of a model."""

    role: Literal["assistant"]
    """Role of the message."""
    content: str | list[Block]
    """A text, or blocks."""
    api: NotRequired[str | None]
    """API of the provider."""
    provider: NotRequired[str | None]
    """Provider that answered; `unknown` where nobody said it."""
    model: NotRequired[str | None]
    """Model that answered; `unknown` where nobody said it."""
    usage: NotRequired[ReportedUsage | None]
    """Tokens that the provider reports."""
    stopReason: NotRequired[str | None]
    """`stop`, `length`, `toolUse`, `error` or `aborted`."""
    errorMessage: NotRequired[str | None]
    """The provider's text where the request failed."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class ReportedUsage(TypedDict):
    """Tokens of a model request, as its provider reports them. A count that is missing is zero."""

    input: NotRequired[float | None]
    """Input that was not cached, in tokens."""
    output: NotRequired[float | None]
    """Output, in tokens."""
    cacheRead: NotRequired[float | None]
    """Input that was read from the provider's cache, in tokens."""
    cacheWrite: NotRequired[float | None]
    """Input that was written to the provider's cache, in tokens."""
    totalTokens: NotRequired[float | None]
    """All of it, in tokens."""
    cost: NotRequired[ReportedCost | None]
    """Cost in dollars; zeros where the prices are not known."""


@final
class ReportedCost(TypedDict):
    """Cost of a model request, in dollars."""

    input: NotRequired[float | None]
    """Cost of the input."""
    output: NotRequired[float | None]
    """Cost of the output."""
    cacheRead: NotRequired[float | None]
    """Cost of cached input."""
    cacheWrite: NotRequired[float | None]
    """Cost of writing to the cache."""
    total: NotRequired[float | None]
    """All of it."""


@final
class ToolResultMessage(TypedDict):
    """A tool result."""

    role: Literal["toolResult"]
    """Role of the message."""
    content: str | list[Block]
    """A text, or blocks."""
    toolCallId: str
    """Id of the call that it answers."""
    toolName: NotRequired[str | None]
    """Name of the tool."""
    isError: NotRequired[bool | None]
    """Whether the tool failed."""
    details: NotRequired[Any]
    """Data of the tool for programs. It is not sent to a model."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class BashExecutionMessage(TypedDict):
    """A command that the user ran beside the model."""

    role: Literal["bashExecution"]
    """Role of the message."""
    command: str
    """The command."""
    output: NotRequired[str | None]
    """Its output."""
    exitCode: NotRequired[int | None]
    """Its exit code."""
    cancelled: NotRequired[bool | None]
    """Whether it was cancelled."""
    truncated: NotRequired[bool | None]
    """Whether the output was cut."""
    excludeFromContext: NotRequired[bool | None]
    """Whether it is sent to no model."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class PythonExecutionMessage(TypedDict):
    """Python code that the user ran beside the model, in files of oh-my-pi."""

    role: Literal["pythonExecution"]
    """Role of the message."""
    code: str
    """The code."""
    output: NotRequired[str | None]
    """Its output."""
    exitCode: NotRequired[int | None]
    """Its exit code."""
    excludeFromContext: NotRequired[bool | None]
    """Whether it is sent to no model."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class CustomMessage(TypedDict):
    """A message of an extension."""

    role: Literal["custom"]
    """Role of the message."""
    content: str | list[Block]
    """A text, or blocks."""
    customType: NotRequired[str | None]
    """Type of the message, which names its owner."""
    display: NotRequired[bool | None]
    """Whether a program shows it."""
    details: NotRequired[Any]
    """Data of the extension."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class HookMessage(TypedDict):
    """A message of a hook, in older files of oh-my-pi."""

    role: Literal["hookMessage"]
    """Role of the message."""
    content: str | list[Block]
    """A text, or blocks."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class FileMentionMessage(TypedDict):
    """Files that the user mentions, in files of oh-my-pi."""

    role: Literal["fileMention"]
    """Role of the message."""
    files: list[dict[str, Any]]
    """The files."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class DeveloperMessage(TypedDict):
    """An instruction of an agent, not of the user."""

    role: Literal["developer"]
    """Role of the message."""
    content: str | list[Block]
    """A text, or blocks."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class SystemMessage(TypedDict):
    """A change of system prompt and tools that pi stores among the messages."""

    role: Literal["system"]
    """Role of the message."""
    content: NotRequired[str | list[Block] | None]
    """A text, or blocks."""
    sections: NotRequired[dict[str, Any] | None]
    """Texts of the system prompt by their names; null removes one."""
    toolsAdded: NotRequired[list[Any] | None]
    """Tools that are added."""
    toolsRemoved: NotRequired[list[Any] | None]
    """Names of tools that are removed."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class BranchSummaryMessage(TypedDict):
    """A summary of a branch that is stored as a message."""

    role: Literal["branchSummary"]
    """Role of the message."""
    summary: str
    """The summary."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class CompactionSummaryMessage(TypedDict):
    """A summary of a compaction that is stored as a message."""

    role: Literal["compactionSummary"]
    """Role of the message."""
    summary: str
    """The summary."""
    timestamp: NotRequired[float]
    """Time, in milliseconds since 1970. `session/append` adds it where it is missing."""


@final
class AppendAnswer(TypedDict):
    """Result of `session/append`."""

    entryIds: list[EntryId]
    """Ids of the new entries, in order."""
    leafEntryId: EntryId | None
    """Leaf after the append."""
    usage: Usage
    """Fullness of the context after the append."""
    next: Next
    """Maintenance that follows."""


@final
class NextNone(TypedDict):
    """No maintenance."""

    type: Literal["none"]


@final
class NextMaintenance(TypedDict):
    """A maintenance operation. Its events follow."""

    type: Literal["maintenance"]
    operationId: OperationId
    """Id of the operation."""
    reason: str
    """Reason of the operation."""
    willRetry: bool
    """Whether the client repeats the turn afterwards."""
    willContinue: bool
    """Whether the session continues without input afterwards."""


@final
class NextRetry(TypedDict):
    """The request fits with a smaller answer. Nothing runs."""

    type: Literal["retry"]
    willRetry: bool
    """Always true: the client repeats the turn."""
    maxOutputTokens: int
    """Largest answer of the next request, in tokens. The next context carries it."""
    why: str
    """Reason, for a person."""


@final
class ContextParams(TypedDict):
    """Params of `session/context`."""

    sessionId: SessionId
    """Id of the session."""
    leafEntryId: NotRequired[EntryId | None]
    """Entry at which the path ends. Default: the leaf. The size of a long context of another entry is estimated by
    characters (`usage.estimator`), unless the context has to fit.
    """
    format: NotRequired[MessageFormat | None]
    """Format of the context. Default: `messages`."""
    wait: NotRequired[bool | None]
    """Answer after running maintenance has ended. Over the window, and where less than half of the reserve is free for
    the answer of the model, the request starts the maintenance that is due.
    """


@final
class ContextAnswer(TypedDict):
    """Result of `session/context`."""

    messages: NotRequired[list[Message] | None]
    """Messages, valid for a provider. Present with the format `messages`."""
    entryIds: NotRequired[list[EntryId | None] | None]
    """Entry of each message; null for the frame of a summary and for a placeholder message."""
    body: NotRequired[AnyObject | None]
    """Request body, valid for its provider. Present with the other formats. The client adds the streaming flag."""
    headers: NotRequired[dict[str, str] | None]
    """Headers that the body needs beside those of its provider, by name. A client sends them with the body. Absent if
    the body needs none.
    """
    why: NotRequired[str | None]
    """The reason for which the provider's own compaction is not in the body, as a sentence. Absent where it is, or
    where there is none of this provider.
    """
    contextId: str
    """Id of the context. `session/append` takes it with the answer that was made for the context."""
    usage: Usage
    """Fullness of the context."""
    compactionEntryId: EntryId | None
    """Compaction in force."""
    model: ModelRef | None
    """Model of the context."""
    maxOutputTokens: int | None
    """Largest answer that the window and the model leave room for."""


@final
class EntriesParams(TypedDict):
    """Params of `session/entries`."""

    sessionId: SessionId
    """Id of the session."""
    since: NotRequired[EntryId | None]
    """Cursor: only entries after this one. An entry id, which means the latest entry with that id, or a `nextCursor`."""
    branch: NotRequired[Branch | None]
    """Selection of entries. Default: `active`."""
    types: NotRequired[Sequence[str] | None]
    """Only entries of these types."""
    limit: NotRequired[int | None]
    """Largest number of entries. Default: 1,000."""
    maxBytes: NotRequired[int | None]
    """Approximate largest size of the page, in bytes; at least one entry is returned. Default: 1 MiB."""
    before: NotRequired[EntryId | None]
    """Cursor: only entries before this one, the newest page first, each page in file order. An entry id, a
    `nextCursor`, or `leaf` for the entries up to the end. Not together with `since`.
    """


@final
class EntriesAnswer(TypedDict):
    """Result of `session/entries`."""

    entries: list[Entry]
    """Entries of the page."""
    leafEntryId: EntryId | None
    """Leaf of the active path."""
    nextCursor: EntryId | None
    """Cursor of the next page, for `since` or for `before`, whichever the request has; null on the last page. A page
    with a cursor may be shorter than `limit`.
    """


@final
class MessageEntry(TypedDict):
    """A message of the conversation."""

    type: Literal["message"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    message: Message
    """The message."""


@final
class CompactionEntry(TypedDict):
    """A summary that stands for everything before `firstKeptEntryId`."""

    type: Literal["compaction"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    summary: str
    """The summary."""
    shortSummary: NotRequired[str | None]
    """Two sentences for a person."""
    firstKeptEntryId: NotRequired[EntryId | None]
    """First entry that is kept verbatim. Its own id keeps none."""
    tokensBefore: float
    """Size of the context before, in tokens."""
    tokensAfter: NotRequired[float | None]
    """Size of the context after, in tokens."""
    method: NotRequired[str | None]
    """Method of the summary, as in `CompactionResult`."""
    details: NotRequired[SummaryDetails | None]
    """Lists of files, or the details of a hook."""
    preserveData: NotRequired[dict[str, Any] | None]
    """Data that programs keep for themselves, by their names. That of this program is under `abridged`."""
    systemMessage: NotRequired[SystemMessage | None]
    """System prompt and tools at that time."""
    usage: NotRequired[ReportedUsage | None]
    """Tokens of the summary, in files of pi."""
    providerReplayThroughEntryId: NotRequired[EntryId | None]
    """oh-my-pi sends no entries up to this one."""
    fromHook: NotRequired[bool | None]
    """Whether a hook or an extension supplied the summary."""
    fromExtension: NotRequired[bool | None]
    """Whether a hook or an extension supplied the summary."""


@final
class SummaryDetails(TypedDict):
    """Lists of files of a summary. A hook may give any JSON value in their place, which is kept as it is."""

    readFiles: NotRequired[list[str] | None]
    """Files that were read and not changed."""
    modifiedFiles: NotRequired[list[str] | None]
    """Files that were changed."""


@final
class BranchSummaryEntry(TypedDict):
    """A summary of a branch that was left."""

    type: Literal["branch_summary"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    fromId: str
    """Leaf of the branch that was left; `root` for none."""
    summary: str
    """The summary."""
    method: NotRequired[str | None]
    """Method of the summary, as in `CompactionResult`."""
    details: NotRequired[SummaryDetails | None]
    """Lists of files, or the details of a hook."""
    preserveData: NotRequired[dict[str, Any] | None]
    """Data that programs keep for themselves, by their names. That of this program is under `abridged`."""
    usage: NotRequired[ReportedUsage | None]
    """Tokens of the summary, in files of pi."""
    fromHook: NotRequired[bool | None]
    """Whether a hook or an extension supplied the summary."""
    fromExtension: NotRequired[bool | None]
    """Whether a hook or an extension supplied the summary."""


@final
class CustomMessageEntry(TypedDict):
    """A message of an extension. Models get it as a message of the user."""

    type: Literal["custom_message"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    customType: str
    """Type of the message, which names its owner."""
    content: str | list[Block]
    """A text, or blocks."""
    display: NotRequired[bool | None]
    """Whether a program shows it."""
    details: NotRequired[Any]
    """Data of the owner."""


@final
class CustomEntry(TypedDict):
    """Data of a program. No model gets it. The line of a broken entry is replaced by one of the type
    `abridged.corrupt`, whose `parentId` may be missing.
    """

    type: Literal["custom"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: NotRequired[EntryId | None]
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    customType: str
    """Type of the data, which names its owner."""
    data: NotRequired[Any]
    """The data."""


@final
class ContextEditEntry(TypedDict):
    """Another content for an entry, or none. The entry itself stays in the file."""

    type: Literal["context_edit"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    targetId: EntryId
    """Entry that is edited."""
    replacement: ContextEditEntryReplacement | None
    """Content in the place of the entry's; null leaves the entry out."""
    abridged: NotRequired[dict[str, Any] | None]
    """Mark of an edit for other programs, which changes no context here."""


@final
class ContextEditEntryReplacement(TypedDict):
    content: str | list[Block]
    """A text, or blocks."""


@final
class LabelEntry(TypedDict):
    """A label of an entry."""

    type: Literal["label"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    targetId: EntryId
    """Entry that has the label."""
    label: NotRequired[str | None]
    """The label. Without one it is removed."""


@final
class SessionInfoEntry(TypedDict):
    """The title of the session."""

    type: Literal["session_info"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    name: NotRequired[str | None]
    """The title."""


@final
class TitleChangeEntry(TypedDict):
    """The title of the session, in files of oh-my-pi."""

    type: Literal["title_change"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    title: NotRequired[str | None]
    """The title."""


@final
class ModelChangeEntry(TypedDict):
    """The model from here on: `provider` and `modelId`, or `model` in files of oh-my-pi."""

    type: Literal["model_change"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    provider: NotRequired[str | None]
    """Provider of the model."""
    modelId: NotRequired[str | None]
    """Id of the model."""
    model: NotRequired[str | None]
    """The model as `provider/id`, in files of oh-my-pi."""


@final
class ThinkingLevelChangeEntry(TypedDict):
    """The thinking level from here on."""

    type: Literal["thinking_level_change"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    thinkingLevel: NotRequired[str | None]
    """The thinking level."""


@final
class ResetBoundaryEntry(TypedDict):
    """A `/clear`: nothing before it is in the context."""

    type: Literal["reset_boundary"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    systemMessage: NotRequired[SystemMessage | None]
    """System prompt and tools at that time."""
    preserveData: NotRequired[dict[str, Any] | None]
    """Data that programs keep for themselves, by their names. That of this program is under `abridged`."""


@final
class UsageEntry(TypedDict):
    """Tokens of a model request beside the turns."""

    type: Literal["usage"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    purpose: NotRequired[str | None]
    """Purpose of the request, as in `llm/complete`."""
    kind: NotRequired[str | None]
    """The same for other programs."""
    trigger: NotRequired[str | None]
    """Reason of the operation that made the request."""
    provider: NotRequired[str | None]
    """Provider that answered."""
    model: NotRequired[str | None]
    """Model that answered."""
    usage: NotRequired[ReportedUsage | None]
    """Tokens that the provider reports."""
    operationId: NotRequired[str | None]
    """Operation that made the request."""


@final
class ModelUsageEntry(TypedDict):
    """The same in files of oh-my-pi."""

    type: Literal["model_usage"]
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Entry that it follows; null for the first one."""
    timestamp: str
    """Time at which it was written."""
    purpose: NotRequired[str | None]
    """Purpose of the request, as in `llm/complete`."""
    kind: NotRequired[str | None]
    """The same for other programs."""
    trigger: NotRequired[str | None]
    """Reason of the operation that made the request."""
    provider: NotRequired[str | None]
    """Provider that answered."""
    model: NotRequired[str | None]
    """Model that answered."""
    usage: NotRequired[ReportedUsage | None]
    """Tokens that the provider reports."""
    operationId: NotRequired[str | None]
    """Operation that made the request."""


@final
class OtherEntry(TypedDict):
    """An entry of a type, or with fields, that this version does not know. It is kept, and adds nothing to a context."""

    type: str
    """Type of the entry."""
    id: EntryId
    """Id of the entry."""
    parentId: NotRequired[EntryId | None]
    """Entry that it follows."""


@final
class EntryParams(TypedDict):
    """Params of `session/entry`."""

    sessionId: SessionId
    """Id of the session."""
    entryId: EntryId
    """Id of the entry."""


@final
class EntryAnswer(TypedDict):
    """Result of `session/entry`."""

    entry: Entry
    """The entry as it was written."""


@final
class SearchParams(TypedDict):
    """Params of `session/search`."""

    sessionId: SessionId
    """Id of the session."""
    query: str
    """Text to find, taken literally; case is ignored."""
    cursor: NotRequired[str | None]
    """`nextCursor` of the page before."""
    limit: NotRequired[int | None]
    """Largest number of matches. Default: 50."""


@final
class SearchAnswer(TypedDict):
    """Result of `session/search`."""

    matches: list[SearchMatch]
    """Matches, newest first, at most one for each entry."""
    nextCursor: str | None
    """Cursor of the next page; null where the whole session was searched."""


@final
class SearchMatch(TypedDict):
    """An entry that contains the text."""

    entryId: EntryId
    """Id of the entry."""
    role: str | None
    """Role of a message; null for other entries."""
    timestamp: str
    """Timestamp in the file's own form."""
    active: bool | None
    """Whether the entry is on the active path; null until the file is indexed."""
    snippet: str
    """Text around the first match."""


@final
class TreeParams(TypedDict):
    """Params of `session/tree`."""

    sessionId: SessionId
    """Id of the session."""
    cursor: NotRequired[EntryId | None]
    """`nextCursor` of the page before."""
    limit: NotRequired[int | None]
    """Largest number of entries. Default: 1,000."""


@final
class TreeAnswer(TypedDict):
    """Result of `session/tree`."""

    nodes: list[TreeNode]
    """Entries in file order: a parent precedes its children."""
    leafEntryId: EntryId | None
    """Leaf of the active path."""
    nextCursor: EntryId | None
    """Cursor of the next page; null on the last page."""


@final
class TreeNode(TypedDict):
    """An entry of the tree."""

    id: EntryId
    """Id of the entry."""
    parentId: EntryId | None
    """Id of the parent; null for a root."""
    type: str
    """Type of the entry."""
    customType: str | None
    """Type of a `custom` entry or a `custom_message`; null for other entries."""
    role: str | None
    """Role of a message; null for other entries."""
    preview: str
    """Content in one line; of an entry without text its type."""
    label: str | None
    """Label of the entry."""
    timestamp: str
    """Timestamp in the file's own form."""
    tokens: int
    """Size of the entry in a context, estimated by its characters."""
    active: bool
    """Whether it is on the active path."""
    hidden: bool
    """Whether it is in no context of any branch: a marker, a label, a change of a setting."""
    undone: bool
    """Whether it is a compaction or a reset that does not hold any more."""


@final
class UsageAnswer(TypedDict):
    """Result of `session/usage`."""

    contextTokens: int
    """Size of the context."""
    contextWindow: int | None
    """Size of the model's window."""
    percent: float | None
    """Size of the context in percent of the window; may exceed 100."""
    thresholdTokens: int | None
    """Size above which the context is compacted."""
    reserveTokens: int
    """Room that is reserved for the next answer."""
    source: UsageSource
    """Source of `contextTokens`."""
    autoCompaction: AutoCompaction
    """Whether automatic compaction is on. `"resting"`: it is, and a compaction was undone, so it acts when the context
    is near its window.
    """
    windowSource: str
    """Source of `contextWindow`: `setting`, `learned`, `catalog` or `default`."""
    canUndo: bool
    """Whether `session/undo_compaction` has a compaction or a reset to undo."""
    breakdown: Breakdown
    """Estimated share of each part of the context."""
    estimator: str
    """Estimator of the estimated part: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good."""
    coldResume: NotRequired[ColdResume | None]
    """Costs of the next request where the prompt cache is cold by the age of the newest report and the context is over
    `compaction.coldResumeTokens`. Only in the answers of `session/usage`, `session/load` and `session/status`.
    """
    thresholds: Thresholds
    """Sizes that the decision compares."""
    why: str
    """Reason why the context is compacted now or not, for a person."""
    code: WhyCode
    """The same reason for a program."""


@final
class Thresholds(TypedDict):
    """Sizes that the decision to compact compares."""

    thresholdTokens: int
    """Size above which the context is compacted."""
    targetTokens: int
    """Size below which a compaction brings the context."""
    fixedOverheadTokens: int
    """Size of system prompt and tools, which a compaction cannot reduce."""
    summaryTokens: int
    """Largest size of a summary."""
    keepRecentTokens: int
    """Size of the newest messages that are kept verbatim."""
    calibration: float | None
    """Ratio of reported to estimated tokens; null before the first report."""
    estimator: str
    """Estimator: `tiktoken`, or `chars` until its tables are loaded."""


@final
class RunIdleAnswerOperationId(TypedDict):
    """The maintenance has started. Its events follow."""

    operationId: OperationId
    """Id of the operation."""


@final
class RunIdleAnswerSkipped(TypedDict):
    """Nothing starts now."""

    skipped: IdleSkipped
    """Reason."""


@final
class CancelParams(TypedDict):
    """Params of `session/cancel`."""

    sessionId: SessionId
    """Id of the session."""
    operationId: NotRequired[OperationId | None]
    """Operation to cancel. Default: every operation of the session."""


@final
class CancelAnswer(TypedDict):
    """Result of `session/cancel`."""

    cancelled: list[Cancelled]
    """Operations that were cancelled."""


@final
class Cancelled(TypedDict):
    """A cancelled operation."""

    operationId: NotRequired[OperationId | None]
    """Id of the operation. A turn has a `turnId` in its place."""
    turnId: NotRequired[OperationId | None]
    """Id of the turn."""
    kind: OperationName
    """Kind of the operation."""


@final
class CompactParams(TypedDict):
    """Params of `session/compact`."""

    sessionId: SessionId
    """Id of the session."""
    instructions: NotRequired[str | None]
    """Instructions for the summary: topics to keep above all."""
    context: NotRequired[Sequence[str] | None]
    """Lines beside the conversation, for the summary. Every request for it has them."""
    keepRecentTokens: NotRequired[int | None]
    """Size of the newest messages that are kept verbatim, without a lower bound. Default: the setting."""
    method: NotRequired[CompactMethod | None]
    """Method of the summary. Default: the setting."""
    model: NotRequired[ModelRefInput | None]
    """The model that writes the summary, and no other. Where it writes none, the compaction fails with
    `provider_error`. Default: the models of the settings, then the session's, then the extracted summary.
    """
    fallback: NotRequired[bool | None]
    """With `model`: where it writes no summary, the others follow, and at last the extracted summary. Default: false."""
    when: NotRequired[When | None]
    """Time of the start. Default: `now`."""
    initiator: NotRequired[Initiator | None]
    """Initiator of the request. Default: `user`. An agent is refused below half of the threshold."""
    dryRun: NotRequired[bool | None]
    """Report the plan without writing."""
    draft: NotRequired[bool | None]
    """With `dryRun`: makes the summary, too, and asks models for it as the compaction would. It takes its time, and is
    cancelled with its request.
    """
    wait: NotRequired[bool | None]
    """Answer when the compaction has ended."""
    newSession: NotRequired[bool | None]
    """The summary begins a new session, which names this one as its parent. This session stays as it is. Default:
    false.
    """
    expectedLeafId: NotRequired[EntryId | None]
    """Expected leaf. The request fails if another message or compaction follows this entry."""
    apply: NotRequired[bool | None]
    """Whether the compaction is written. Default: true. False makes the whole result, answers with it at its end, and
    writes nothing: for a host that applies it itself, also on a read-only session. Hooks are not asked, and it is
    cancelled with its request.
    """
    leafEntryId: NotRequired[EntryId | None]
    """With `apply: false` or `dryRun`: the entry that the context ends with. Default: the leaf."""


@final
class ErrorDataParseError(TypedDict):
    """The frame is not JSON."""

    code: Literal["parse_error"]
    retryable: bool


@final
class ErrorDataInvalidRequest(TypedDict):
    """The frame is JSON and not a request."""

    code: Literal["invalid_request"]
    retryable: bool


@final
class ErrorDataAlreadyInitialized(TypedDict):
    """`initialize` was sent twice."""

    code: Literal["already_initialized"]
    retryable: bool


@final
class ErrorDataFrameTooLarge(TypedDict):
    """The frame exceeds the limit and was skipped."""

    code: Literal["frame_too_large"]
    retryable: bool


@final
class ErrorDataMethodNotFound(TypedDict):
    """The method does not exist."""

    code: Literal["method_not_found"]
    retryable: bool


@final
class ErrorDataInvalidParams(TypedDict):
    """The params do not fit the method."""

    code: Literal["invalid_params"]
    retryable: bool
    path: str
    """Path in the params, for example `messages[1].role`; empty for the params as a whole."""


@final
class ErrorDataInternal(TypedDict):
    """A defect of the daemon."""

    code: Literal["internal"]
    retryable: bool


@final
class ErrorDataRequestCancelled(TypedDict):
    """The client cancelled the request."""

    code: Literal["request_cancelled"]
    retryable: bool


@final
class ErrorDataContentModified(TypedDict):
    """The session's leaf is not the expected one."""

    code: Literal["content_modified"]
    retryable: bool
    leafEntryId: EntryId | None
    """Current leaf."""


@final
class ErrorDataOverloaded(TypedDict):
    """Too many requests are in flight."""

    code: Literal["overloaded"]
    retryable: bool
    retryAfterMs: int
    """Delay before the next try, in milliseconds."""


@final
class ErrorDataNotFound(TypedDict):
    """The named thing does not exist."""

    code: Literal["not_found"]
    retryable: bool
    kind: ThingName
    """Kind of the thing."""


@final
class ErrorDataBusy(TypedDict):
    """Another operation runs."""

    code: Literal["busy"]
    retryable: bool
    operationId: OperationId
    """Id of that operation."""
    kind: OperationName
    """Kind of that operation."""


@final
class ErrorDataLocked(TypedDict):
    """Another process owns the session."""

    code: Literal["locked"]
    retryable: bool
    pid: int | None
    """Its process id, if the lock names one."""
    host: str | None
    """Its machine, where the session is in a store."""
    since: str | None
    """The time since which it owns the session, where that is in a store."""


@final
class ErrorDataNothingToCompact(TypedDict):
    """There is nothing to compact."""

    code: Literal["nothing_to_compact"]
    retryable: bool
    reason: WhyNothing
    """Reason."""


@final
class ErrorDataContextOverflow(TypedDict):
    """No compaction makes the context small enough."""

    code: Literal["context_overflow"]
    retryable: bool
    floor: ContextFloor
    """Parts that a compaction cannot reduce."""
    contextWindow: int
    """Size of the window, in tokens."""


@final
class ErrorDataProviderError(TypedDict):
    """A model request failed."""

    code: Literal["provider_error"]
    retryable: bool
    provider: str | None
    """Name of the provider; null for a service of which no model is known."""
    model: str | None
    """Name of the model at the provider; null for such a service."""
    httpStatus: int | None
    """HTTP status of the response, if there was one."""


@final
class ErrorDataStorageError(TypedDict):
    """An operation on a file or on the store failed, or the session is read-only."""

    code: Literal["storage_error"]
    retryable: bool
    path: str
    """Path of the file."""
    errno: int | None
    """The system's error number, for an error of the operating system."""


@final
class ErrorDataNotInitialized(TypedDict):
    """The request precedes `initialize`."""

    code: Literal["not_initialized"]
    retryable: bool


@final
class ErrorDataUnsupportedProtocolVersion(TypedDict):
    """The protocol version is not supported."""

    code: Literal["unsupported_protocol_version"]
    retryable: bool
    supported: list[int]
    """Supported versions."""


@final
class CompactAnswerOperationId(TypedDict):
    """The compaction has started. Its events follow."""

    operationId: OperationId
    """Id of the operation."""


@final
class CompactAnswerOutcome(TypedDict):
    """With `wait`: the compaction has ended."""

    operationId: OperationId
    """Id of the operation."""
    outcome: Outcome
    """Outcome of the operation."""
    result: NotRequired[CompactionResult | None]
    """Compaction that was written."""
    newSessionId: NotRequired[SessionId | None]
    """Session that the summary begins."""
    error: NotRequired[ErrorData | None]
    """Error of a failed operation."""
    errorMessage: NotRequired[str | None]
    """Text of the error."""
    skippedReason: NotRequired[WhyNothing | None]
    """Reason of a skipped operation."""


@final
class CompactAnswerPreparation(TypedDict):
    """With `dryRun`: the plan."""

    preparation: Preparation
    """Plan of the compaction."""
    draft: NotRequired[ShownDraft | None]
    """With `draft`: the compaction that would be written."""


@final
class CompactionResult(TypedDict):
    """A completed compaction."""

    entryId: EntryId | None
    """Id of the compaction entry; null with `apply: false`."""
    summary: str | None
    """Summary; null where the frame would exceed 60 KiB. `session/entry` returns it whole."""
    shortSummary: str | None
    """Two sentences for a person; null like the summary where a hook supplied a long text."""
    firstKeptEntryId: EntryId | None
    """First entry that is kept verbatim; null where none is."""
    tokensBefore: int
    """Size of the context before."""
    tokensAfter: int
    """Estimated size of the context after."""
    details: SummaryDetails
    """Lists of files, or the details of a hook; null where the frame would exceed 60 KiB."""
    fromHook: bool
    """Whether a hook supplied the summary."""
    method: SummaryMethod
    """Method of the summary."""
    model: ModelRef | None
    """Model of the summary; null for a method without a model."""
    form: NotRequired[SummaryForm | None]
    """Form of the requests to the model of the summary; absent for a method without a model, and for a provider's own
    compaction.
    """
    saved: NotRequired[Saved | None]
    """Savings by the provider's cache; absent where nothing was read from it."""
    parts: NotRequired[PartOrigins | None]
    """Origins of the two parts of a split turn's summary, where they differ: one was extracted, or two models wrote
    them. `method` and `model` are then those of the part by a model, or of the history.
    """
    rejected: list[Rejected]
    """Candidates that did not become the summary, or a part of it."""
    usage: MessageUsage | None
    """Tokens of all requests to models together; null where none was asked."""
    covered: Extent
    """Entries that the summary stands for."""
    kept: Extent
    """Entries that are kept verbatim."""
    lost: Lost | None
    """Facts that the summary does not have; null for a conversation that is too large to be read again. They stay in
    the session.
    """
    shortened: NotRequired[list[ShortenedEntry]]
    """Entries that the compaction cuts or summarizes before any model has read them; absent where there are none.
    Where the frame would exceed 60 KiB, the last ones are left out: the compaction entry has an edit for each entry
    that is cut.
    """
    rehydration: NotRequired[Rehydrated | None]
    """Files and loaded texts to bring back; absent where `compaction.rehydrate` is off, or the frame would exceed 60
    KiB.
    """


@final
class PartOrigins(TypedDict):
    """The origins of the parts of a summary, where they differ."""

    history: PartOrigin
    """The origin of the whole turns."""
    turnPrefix: PartOrigin
    """The origin of the beginning of the turn whose end is kept."""


@final
class PartOrigin(TypedDict):
    """The origin of a part. The default: extracted without a model."""

    method: SummaryMethod
    """The method of the part."""
    model: ModelRef | None
    """The model that wrote the part; null for a method without a model."""


@final
class Rejected(TypedDict):
    """A candidate that did not become the summary."""

    method: SummaryMethod
    """Method of the candidate."""
    model: ModelRef | None
    """Model of the candidate."""
    why: str
    """Reason of the rejection."""
    error: NotRequired[ErrorData | None]
    """Error of the provider, for a candidate that failed with one."""


@final
class ContextFloor(TypedDict):
    """Parts that a compaction cannot reduce, in tokens."""

    system: int
    """System prompt."""
    tools: int
    """Tools."""
    pins: int
    """Pins."""
    latestTurn: int
    """Newest user message and the messages that must stay with it."""


@final
class MessageUsage(TypedDict):
    """Tokens of requests, in the form of a message's `usage`."""

    input: int
    """Input that was not cached."""
    output: int
    """Output."""
    cacheRead: int
    """Input that was read from the provider's cache."""
    cacheWrite: int
    """Input that was written to the provider's cache."""
    totalTokens: int
    """All of it."""


@final
class Extent(TypedDict):
    """A part of a context."""

    entries: int
    """Number of its messages."""
    tokens: int
    """Size of its messages before the compaction, in tokens."""


@final
class Lost(TypedDict):
    """The facts that are not in a summary, the first of each kind. They stay in the session."""

    rules: list[str]
    """Rules of the user."""
    todos: list[str]
    """Open tasks."""
    errors: list[str]
    """Errors that are not solved."""
    files: list[str]
    """Files that were changed."""


@final
class ShortenedEntry(TypedDict):
    """An entry that a compaction cuts or summarizes before any model has read it."""

    entryId: EntryId
    """The entry. `session/entry` returns it whole."""
    tokensBefore: int
    """Size of its message before, in tokens."""
    tokensAfter: int
    """Size of its message in the context, in tokens; 0 where it is summarized."""


@final
class Rehydrated(TypedDict):
    """Files and texts that the summarized part had, and the context has no more, or only in part."""

    files: list[FileToRead]
    """At most five files that are worth reading again: first the changed ones, from the newest change on, then those
    that were only read, from the newest read on. A file that was removed, or whose newest form is in the kept part,
    is not among them.
    """
    filesLeftOut: int
    """Number of the other files that the summarized part read or changed."""
    loaded: list[Loaded]
    """At most twenty skills and instructions that the summarized part loaded and the kept part does not, from the
    newest on.
    """
    loadedLeftOut: int
    """Number of the others."""


@final
class FileToRead(TypedDict):
    """A file that is worth reading again."""

    path: str
    """The file. A relative path of a tool is taken from the session's `cwd`. It is not looked for on the disk."""
    operation: FileUse
    """The newest use of the file."""
    tokens: int | None
    """Size of the file when the session last had it whole, in tokens; null where it never had. The size on the disk
    may differ.
    """
    entryId: EntryId
    """The entry with that use: the result of a call."""


@final
class Loaded(TypedDict):
    """A skill, or the instructions of a file, that the agent loaded."""

    kind: LoadKind
    """The kind."""
    name: str
    """The name of the skill, or of the file."""
    path: str | None
    """The file, if the agent named it."""
    tokens: int
    """Size of the text as it was loaded, in tokens."""
    kept: LoadKept
    """The part of the text that stays in the context."""
    entryId: EntryId
    """The entry with the text."""


@final
class Preparation(TypedDict):
    """Plan of a compaction."""

    firstKeptEntryId: EntryId | None
    """First entry that would be kept verbatim; null where none would."""
    messagesToSummarize: int
    """Number of messages in whole turns that would be summarized."""
    turnPrefixMessages: int
    """Number of messages that would be summarized from a turn whose end is kept."""
    isSplitTurn: bool
    """Whether the cut is inside a turn."""
    tokensBefore: int
    """Size of the context now."""
    tokensAfterEstimate: int
    """Upper bound of the context's size after the compaction."""
    warning: NotRequired[WhyNothing | None]
    """`would_not_shrink` where a summary of the largest size makes nothing smaller. With such a summary the compaction
    is skipped, unless it has instructions. Absent where the context becomes smaller.
    """
    previousSummary: str | None
    """Summary in force, which would be merged into the new one."""
    chunks: int
    """Number of model requests. Each but the first of a long conversation carries the summary so far, whose length is
    a guess.
    """
    summarizer: Summarizer
    """Author of the summary."""
    fileOps: FileOps
    """Files of the summarized messages."""
    planHash: str
    """Fingerprint of the plan: equal plans of one session have equal values."""


@final
class FileOps(TypedDict):
    """Files that a conversation touched."""

    read: list[str]
    """Files that were read and not changed."""
    modified: list[str]
    """Files that were changed."""


@final
class ShownDraft(TypedDict):
    """A compaction before it is written."""

    summary: str
    """The summary, whole."""
    shortSummary: str | None
    """Two sentences for a person; null where there are none."""
    firstKeptEntryId: EntryId | None
    """First entry that is kept verbatim; null where none is."""
    tokensBefore: int
    """Size of the context before."""
    tokensAfter: int
    """Size of the context after."""
    method: SummaryMethod
    """Method of the summary."""
    lost: Lost | None
    """Facts that the summary does not have; null for a conversation that is too large to be read again."""


@final
class FitParams(TypedDict):
    """Params of `context/fit`."""

    messages: Sequence[GivenMessage]
    """The messages, oldest first."""
    format: NotRequired[MessageFormat | None]
    """Format of the messages, in the params and in the result. Default: `messages`."""
    system: NotRequired[str | None]
    """System prompt beside the messages."""
    tools: NotRequired[Tools | None]
    """Tools of the model."""
    model: NotRequired[ModelRefInput | None]
    """Model that the messages are for. Default: the setting `defaultModel`."""
    contextWindow: NotRequired[int | None]
    """Size of its window, in tokens. Default: that of the model."""
    maxOutputTokens: NotRequired[int | None]
    """Its longest answer, in tokens."""
    keepRecentTokens: NotRequired[int | None]
    """Size of the newest messages that are kept verbatim, in tokens. With it the messages are compacted also where
    they fit.
    """
    previousSummary: NotRequired[str | None]
    """Summary of the messages before the first one. The new summary continues it."""
    instructions: NotRequired[str | None]
    """Instructions for the summary: topics to keep above all."""


@final
class FitAnswer(TypedDict):
    """Result of `context/fit`."""

    messages: list[GivenMessage]
    """Messages that fit the window: the summary in messages of its own, then the kept messages as they were given."""
    summary: str | None
    """The summary; null where nothing was summarized. The next request gives it back as `previousSummary` with the
    messages from `firstKeptIndex` on. It ends with the newest request of the user, between the tags `<user-
    message>`, where that is not among the kept messages.
    """
    firstKeptIndex: int
    """Place of the first kept message among the given ones; their number where none is kept."""
    tokensBefore: int
    """Size of the context before, with system prompt and tools."""
    tokensAfter: int
    """Size of the context after."""
    method: SummaryMethod | None
    """Method of the summary; null where nothing was summarized."""
    rejected: list[Rejected]
    """Candidates that did not become the summary."""


@final
class UndoAnswer(TypedDict):
    """Result of `session/undo_compaction`."""

    leafEntryId: EntryId | None
    """Leaf after the undo."""
    usage: Usage
    """Fullness of the context after the undo."""


@final
class ResetAnswer(TypedDict):
    """Result of `session/reset`."""

    entryId: EntryId
    """The reset. Nothing before it is in the context, except pins."""
    leafEntryId: EntryId | None
    """Leaf after the reset."""
    usage: Usage
    """Fullness of the context after the reset."""


@final
class PromptParams(TypedDict):
    """Params of `session/prompt`."""

    sessionId: SessionId
    """Id of the session."""
    message: PromptMessage
    """The message: a text, or content blocks in pi's form (`text` and `image`)."""
    behavior: NotRequired[Behavior | None]
    """Delivery while a turn runs. Default: `follow_up`."""


@final
class PromptAnswer(TypedDict):
    """Result of `session/prompt`."""

    turnId: OperationId
    """Id of the turn that answers the message."""
    disposition: Disposition
    """Whether the turn has started."""


@final
class ContinueAnswer(TypedDict):
    """Result of `session/continue`."""

    turnId: OperationId
    """Id of the turn."""


@final
class NavigateParams(TypedDict):
    """Params of `session/navigate`."""

    sessionId: SessionId
    """Id of the session."""
    targetEntryId: EntryId
    """Entry at which the conversation goes on. For a message of the user it goes on before that message, whose text is
    in the result.
    """
    summarize: NotRequired[bool | None]
    """Summarize the branch that is left. Default: the setting `branchSummary.enabled`."""
    instructions: NotRequired[str | None]
    """Topics that the summary keeps above all. At most 65536 bytes."""
    replaceInstructions: NotRequired[bool | None]
    """The instructions take the place of the prompt. Default: false."""
    label: NotRequired[str | None]
    """Label of the entry with the summary; without a summary, of the target. At most 1024 bytes."""
    wait: NotRequired[bool | None]
    """Answer when the session has moved."""


@final
class NavigateAnswerOperationId(TypedDict):
    """The navigation has started. Its events follow."""

    operationId: OperationId
    """Id of the operation."""


@final
class NavigateAnswerSummaryEntryId(TypedDict):
    """With `wait`: the navigation has ended."""

    operationId: OperationId
    """Id of the operation."""
    outcome: Outcome
    """Outcome of the operation."""
    oldLeafId: EntryId | None
    """Leaf before; null for a session without entries."""
    newLeafId: EntryId | None
    """Leaf now; null before the first entry."""
    editorText: str | None
    """Text of the message before which the conversation goes on; null for any other target."""
    summaryEntryId: EntryId | None
    """Entry with the summary of the branch that was left."""
    error: NotRequired[ErrorData | None]
    """Error of a failed operation."""
    errorMessage: NotRequired[str | None]
    """Text of the error."""


@final
class ReferenceParams(TypedDict):
    """Params of `session/reference`."""

    sessionId: SessionId
    """Id of the session that receives the extract."""
    fromSessionId: SessionId
    """Id of the session that is read."""
    question: NotRequired[str | None]
    """The question that the extract answers. Default: everything that helps the conversation of this session."""
    wait: NotRequired[bool | None]
    """Answer when the extract is written."""


@final
class ReferenceAnswerOperationId(TypedDict):
    """The extraction has started. Its events follow."""

    operationId: OperationId
    """Id of the operation."""


@final
class ReferenceAnswerOutcome(TypedDict):
    """With `wait`: the extraction has ended."""

    operationId: OperationId
    """Id of the operation."""
    outcome: Outcome
    """Outcome of the operation."""
    entryId: NotRequired[EntryId | None]
    """The `custom_message` with the extract."""
    error: NotRequired[ErrorData | None]
    """Error of a failed operation."""
    errorMessage: NotRequired[str | None]
    """Text of the error."""


@final
class HandoffParams(TypedDict):
    """Params of `session/handoff`."""

    sessionId: SessionId
    """Id of the session."""
    goal: NotRequired[str | None]
    """Goal of the new session, of at most 8,000 characters. The document is written for it."""
    instructions: NotRequired[str | None]
    """Topics that the document keeps above all, in at most 8,000 characters."""
    model: NotRequired[ModelRefInput | None]
    """The model that writes the document, and no other. Default: the session's."""
    dryRun: NotRequired[bool | None]
    """Return the document without a new session."""
    document: NotRequired[str | None]
    """The document. No model is asked."""
    save: NotRequired[bool | None]
    """Save the document as a file beside the new session, too. Default: false."""
    wait: NotRequired[bool | None]
    """Answer when the new session is open."""


@final
class HandoffAnswerOperationId(TypedDict):
    """The handoff has started. Its events follow."""

    operationId: OperationId
    """Id of the operation."""


@final
class HandoffAnswerOutcome(TypedDict):
    """With `wait`: the handoff has ended."""

    operationId: OperationId
    """Id of the operation."""
    outcome: Outcome
    """Outcome of the operation."""
    newSessionId: NotRequired[SessionId | None]
    """The session that goes on."""
    document: NotRequired[str | None]
    """The document."""
    savedPath: NotRequired[str | None]
    """File with the document, if `save` asked for one."""
    error: NotRequired[ErrorData | None]
    """Error of a failed operation."""
    errorMessage: NotRequired[str | None]
    """Text of the error."""


@final
class HandoffAnswerDocument(TypedDict):
    """With `dryRun`: the document."""

    document: str
    """The document."""


@final
class PruneParams(TypedDict):
    """Params of `session/prune`."""

    sessionId: SessionId
    """Id of the session."""
    protectTokens: NotRequired[int | None]
    """Size of the newest tool results that stay whole, in tokens. Default: the setting."""
    minimumSavings: NotRequired[int | None]
    """Smallest saving that is worth a change, in tokens. Default: the setting."""
    dryRun: NotRequired[bool | None]
    """Report the effect without writing."""


@final
class PruneAnswer(TypedDict):
    """Result of `session/prune`."""

    entryIds: list[EntryId]
    """Entries whose content is replaced by one line."""
    tokensSaved: int
    """Estimated saving, in tokens."""


@final
class PinParams(TypedDict):
    """Params of `session/pin` and `session/unpin`: an entry or a text."""

    sessionId: SessionId
    """Id of the session."""
    entryId: NotRequired[EntryId | None]
    """Entry of the conversation."""
    text: NotRequired[str | None]
    """Text to pin; it becomes a message."""


@final
class EntryIdAnswer(TypedDict):
    """Result of methods that return one entry's id."""

    entryId: EntryId
    """`session/label`: the entry that holds the label. `session/pin` and `session/unpin`: the pinned entry."""


@final
class LabelParams(TypedDict):
    """Params of `session/label`."""

    sessionId: SessionId
    """Id of the session."""
    targetEntryId: EntryId
    """Entry to label."""
    label: NotRequired[str | None]
    """Label, of at most 1024 bytes; null removes it."""


@final
class ConfigureParams(TypedDict):
    """Params of `session/configure`. A missing field stays unchanged, null clears it."""

    sessionId: SessionId
    """Id of the session."""
    model: NotRequired[ModelRefInput | None]
    """Model from here on. Null is refused: a model cannot be cleared."""
    thinkingLevel: NotRequired[ThinkingLevel | None]
    """Thinking level from here on; null for `off`."""
    systemPrompt: NotRequired[str | None]
    """System prompt."""
    tools: NotRequired[Tools | None]
    """Tools of the model."""
    title: NotRequired[str | None]
    """Title of the session."""
    contextWindow: NotRequired[int | None]
    """Size of the window of the session's model, in tokens, in place of that in `models`; null clears it. It belongs
    to the model: another model has its own.
    """
    maxOutputTokens: NotRequired[int | None]
    """The longest answer of the session's model, in tokens; null clears it."""


@final
class ConfigureAnswer(TypedDict):
    """Result of `session/configure`."""

    session: SessionInfo
    """State of the session."""
    next: Next
    """Maintenance that follows."""


@final
class ForkParams(TypedDict):
    """Params of `session/fork`. Without `entryId` the fork has the whole path to the leaf."""

    sessionId: SessionId
    """Id of the session."""
    entryId: NotRequired[EntryId | None]
    """Entry at which the fork ends; on any branch. A marker is refused. `at` refuses a tool result that is not the
    last one of its batch.
    """
    position: NotRequired[ForkPosition | None]
    """Whether the fork ends before that entry or with it. Default: `before`. Without `entryId` it is `at` the leaf."""
    cwd: NotRequired[str | None]
    """Working folder of the fork; an absolute path. Default: that of the session."""


@final
class ForkAnswer(TypedDict):
    """Result of `session/fork`."""

    session: SessionInfo
    """The new session. It is open, and the client is subscribed to its events."""
    editorText: str | None
    """Text of the user's message, or of the `custom_message`, before which the fork ends; null where it ends
    elsewhere.
    """


@final
class ExportParams(TypedDict):
    """Params of `session/export`."""

    sessionId: SessionId
    """Id of the session."""
    format: ExportFormat
    """Format of the export."""
    path: str
    """Path of the new file. A relative path is below the session's working folder. An existing file is refused."""


@final
class ExportAnswer(TypedDict):
    """Result of `session/export`."""

    path: str
    """Path of the file."""


@final
class SubscribeParams(TypedDict):
    """Params of `session/subscribe`."""

    sessionId: SessionId
    """Id of the session."""
    after: NotRequired[Seen | None]
    """Last event that the client has seen. Retained events after it are sent again."""


@final
class Seen(TypedDict):
    """Position of an event."""

    epoch: str
    """Run of the daemon."""
    seq: int
    """Number of the event."""


@final
class SubscribeAnswer(TypedDict):
    """Result of `session/subscribe`."""

    epoch: str
    """Id of this run of the daemon."""
    seq: int
    """Number of the last event."""
    status: Subscription
    """Whether every durable event after `after` is retained."""
    replayed: int
    """Number of events that are sent again, in order and with their old numbers."""
    snapshot: StatusAnswer | None
    """State of the session; null where the events that follow are complete."""


@final
class ModelsListParams(TypedDict):
    """Params of `models/list`."""

    sessionId: NotRequired[SessionId | None]
    """Session whose own model is listed too."""


@final
class ModelsListAnswer(TypedDict):
    """Result of `models/list`."""

    models: list[ListedModel]
    """Models of the settings in their order, then other models in use."""


@final
class ListedModel(TypedDict):
    """A model and what is known of it."""

    provider: str
    """The provider's name."""
    id: str
    """The model's name at that provider."""
    api: Api | None
    """The wire format."""
    baseUrl: str | None
    """The base URL, without credentials."""
    apiKeyEnv: str | None
    """The environment variable with the key. Its value is never sent."""
    contextWindow: Known
    """Size of the window, in tokens."""
    maxOutputTokens: Known | None
    """The output limit, in tokens; null where it is unknown."""
    cost: KnownCost | None
    """The prices; null where they are unknown."""
    promoteTo: str | None
    """`"provider/id"` of a larger model to go to."""
    default: bool
    """Whether sessions without a model of their own use this model."""
    learned: list[LearnedWindow]
    """The windows that its servers taught, whether they count or not. `models/forget` clears them."""


@final
class Known(TypedDict):
    """A value and its source."""

    value: int
    """The value."""
    source: KnownBy
    """The source."""


@final
class KnownCost(TypedDict):
    """Prices in dollars per million tokens, and their source."""

    input: float
    """Input that is not cached."""
    output: float
    """Output."""
    cacheRead: float | None
    """Input that is read from the prompt cache; null where it is unknown."""
    cacheWrite: float | None
    """Input that is written to the prompt cache; null where it is unknown, or costs as much as input."""
    source: KnownBy
    """The source."""


@final
class LearnedWindow(TypedDict):
    """A window that a provider taught."""

    model: ModelRef
    """The model."""
    baseUrl: NotRequired[str | None]
    """The `baseUrl` of its server in the settings, without credentials; null where they name none. Absent where an
    older version learned it: then it counts for every server of the model.
    """
    contextWindow: int
    """Size of the window, in tokens."""
    origin: WindowOrigin
    """The evidence for it."""
    learnedAt: str | None
    """Time of the last evidence; null where an older version learned it."""
    refusals: int
    """Number of times that it was taught. From the second one on it counts over a larger window that a host or a
    setting names, in every session.
    """
    session: SessionId | None
    """The session in which it was taught last. It counts over a named window there from the beginning."""


@final
class ModelsForgetParams(TypedDict):
    """Params of `models/forget`."""

    model: ModelRefInput
    """The model."""


@final
class ModelsForgetAnswer(TypedDict):
    """Result of `models/forget`."""

    forgotten: list[LearnedWindow]
    """The windows that were forgotten, one for each server of the model. Empty where none was learned. A bound that a
    session keeps for itself, from a refusal without a limit, is forgotten, too, and is not listed.
    """


@final
class SettingsGetParams(TypedDict):
    """Params of `settings/get`."""

    sessionId: NotRequired[SessionId | None]
    """Session whose effective settings are returned. Default: the settings outside of sessions."""


@final
class Sourced(TypedDict):
    """Settings with the source of each value."""

    settings: Settings
    """The settings in force."""
    sources: dict[str, Source]
    """The source of each value that is not a default, by its dotted key."""


@final
class Settings(TypedDict):
    """All settings with their defaults. Token counts are in tokens, times in the unit their name ends with.
    `x-project` is the range of a number in the file of a project that is not trusted. Where −1 stands for none, it
    is allowed there, too. With `x-outOfRange: "clamped"` the nearest number of the range is used; any other number
    outside of its range is not used.
    """

    defaultModel: str | None
    """`"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be
    asked.
    """
    models: list[ModelSettings]
    """The models."""
    compaction: CompactionSettings
    """Compaction of sessions."""
    prune: PruneSettings
    """Pruning of old tool results."""
    tools: ToolSettings
    """The tools of agents."""
    branchSummary: BranchSummarySettings
    """Summaries of branches that are left."""
    contextPromotion: PromotionSettings
    """Promotion to a larger model instead of a compaction."""
    retry: RetrySettings
    """Retries of transient errors."""
    redaction: RedactionSettings
    """Redaction of secrets in summaries."""
    tokens: TokenSettings
    """Estimation of tokens."""
    trustedProjects: list[str]
    """Folders whose project settings are trusted."""
    store: Secret | None
    """The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the
    daemon starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
    """
    storePasswordCommand: list[str] | None
    """A command whose first line of output is the password of the store: the program, then its arguments. No shell
    reads it. It runs for each connection.
    """


@final
class ModelSettings(TypedDict):
    """One model."""

    provider: str
    """The provider's name."""
    id: str
    """The model's name at that provider."""
    api: Api | None
    """The wire format."""
    baseUrl: str | None
    """The base URL, in the form that the provider's own SDK takes."""
    apiKeyEnv: str | None
    """The environment variable with the key."""
    apiKeyCommand: list[str] | None
    """A command whose first line of output is the key: the program, then its arguments. No shell reads it."""
    headers: dict[str, Secret]
    """Headers of every request, by name, for proxies. The values are secret."""
    contextWindow: int | None
    """Size of the window, in tokens."""
    maxOutputTokens: int | None
    """The longest answer, in tokens."""
    reasoning: bool | None
    """True for a model that thinks before it answers. Default: the value of the catalog."""
    nativeCompaction: bool | None
    """Whether its provider compacts its conversations on demand (Anthropic) or by itself (OpenAI). Default: the answer
    of the provider, for the providers `anthropic` and `openai` alone.
    """
    promoteTo: str | None
    """`"provider/id"` of the larger model for `contextPromotion`."""
    cost: ModelCost | None
    """Its prices. Default: those of the catalog."""
    compaction: CompactionPatch | None
    """Overrides of `compaction` for this model."""


@final
class CompactionSettings(TypedDict):
    """Compaction of sessions."""

    enabled: bool
    """Compacts automatically."""
    strategy: Strategy
    """The action at the threshold."""
    reserveTokens: int | None
    """Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller
    window.
    """
    keepRecentTokens: int
    """Tokens of the newest messages that stay as they are; 0 keeps none."""
    thresholdPercent: int
    """Threshold in percent of the window; −1: none."""
    thresholdTokens: int
    """Threshold in tokens; −1: none."""
    autoContinue: bool
    """Continues a daemon-driven session after a compaction."""
    midTurn: bool
    """Allows a compaction between the tool calls of a turn."""
    remoteEnabled: bool
    """Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also
    allows that of another provider whose models are asked by `openai_responses`.
    """
    remoteEndpoint: str | None
    """URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}`
    answers it. It is asked before the models and gets no key.
    """
    idleEnabled: bool
    """Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an
    answer that reports cached tokens.
    """
    idleThresholdTokens: int
    """The smallest context that is compacted while the user is away, in tokens."""
    idleTimeoutSeconds: int
    """Time without activity after which the user counts as away, in seconds."""
    speculative: Speculative
    """Drafts summaries ahead."""
    stallSeconds: int
    """Time without progress of an answer after which the next candidate is asked, in seconds."""
    deadlineSeconds: int
    """The longest automatic maintenance, in seconds."""
    maxConcurrent: int
    """The most summaries at the same time, over all sessions."""
    maxTokensPerHour: int
    """The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries
    are extracted without a model. The file of a project can only make it smaller.
    """
    models: list[str]
    """`"provider/id"` of each summarizer, in order."""
    style: Style
    """The layout of a compacted context."""
    transcriptHint: bool
    """Ends the frame of a summary with a line that names the file of the session, where the whole conversation is."""
    rehydrate: bool
    """Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and
    instructions that the agent loaded in the summarized part. Those that stood in tool results stay in the context:
    at most 5,000 tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
    """
    coldResume: ColdResumption
    """The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose
    context is over `coldResumeTokens`.
    """
    coldResumeTokens: int
    """Size over which a context with a cold cache is large, in tokens; −1: half of the threshold."""


@final
class PruneSettings(TypedDict):
    """Pruning of old tool results."""

    protectTokens: int
    """Tokens of the newest results that stay."""
    minimumSavings: int
    """The least tokens for which results are pruned."""
    protectedTools: list[str]
    """Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that
    reads a file (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`,
    …). A read of a file that a newer one repeats is pruned all the same.
    """
    cacheSeconds: int
    """Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and at
    least as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
    """


@final
class ToolSettings(TypedDict):
    """The tools of agents."""

    files: list[FileTool]
    """Tools that touch files. They come before the built-in ones of common agents."""
    todo: list[str]
    """Tools that hold the todo list. They come before the built-in ones."""
    skills: list[str]
    """Tools that load a skill, beside the built-in ones."""


@final
class BranchSummarySettings(TypedDict):
    """Summaries of branches that are left."""

    enabled: bool
    """The default of `summarize`."""
    reserveTokens: int
    """Tokens that stay free in the summarizer's window."""


@final
class PromotionSettings(TypedDict):
    """Promotion to a larger model instead of a compaction."""

    enabled: bool
    """Switches it on."""


@final
class RetrySettings(TypedDict):
    """Retries of transient errors."""

    enabled: bool
    """Switches it on."""
    maxRetries: int
    """The most retries of a request."""
    baseDelayMs: int
    """The first delay, in milliseconds."""
    maxDelayMs: int
    """The longest delay, in milliseconds."""


@final
class RedactionSettings(TypedDict):
    """Redaction of secrets in summaries."""

    enabled: bool
    """Switches it on."""


@final
class TokenSettings(TypedDict):
    """Estimation of tokens."""

    estimator: EstimatorSetting
    """The estimator."""
    learnWindow: bool
    """Learns the window that a provider names in an error."""


@final
class SettingsSetParams(TypedDict):
    """Params of `settings/set`."""

    scope: Scope
    """Scope of the change."""
    sessionId: NotRequired[SessionId | None]
    """Session that the scope refers to. With scope `global`: the session whose effective settings are returned."""
    patch: SettingsPatch
    """JSON merge patch. Null removes a value, so that the value of the next layer applies."""


@final
class SettingsPatch(TypedDict):
    """A JSON merge patch of settings. Null removes a value."""

    defaultModel: NotRequired[str | None]
    """`"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be
    asked.
    """
    models: NotRequired[list[ModelSettingsInput] | None]
    """The models."""
    compaction: NotRequired[SettingsPatchCompaction | None]
    """Compaction of sessions."""
    prune: NotRequired[SettingsPatchPrune | None]
    """Pruning of old tool results."""
    tools: NotRequired[SettingsPatchTools | None]
    """The tools of agents."""
    branchSummary: NotRequired[SettingsPatchBranchSummary | None]
    """Summaries of branches that are left."""
    contextPromotion: NotRequired[SettingsPatchContextPromotion | None]
    """Promotion to a larger model instead of a compaction."""
    retry: NotRequired[SettingsPatchRetry | None]
    """Retries of transient errors."""
    redaction: NotRequired[SettingsPatchRedaction | None]
    """Redaction of secrets in summaries."""
    tokens: NotRequired[SettingsPatchTokens | None]
    """Estimation of tokens."""
    trustedProjects: NotRequired[list[str] | None]
    """Folders whose project settings are trusted."""
    store: NotRequired[Secret | None]
    """The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the
    daemon starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
    """
    storePasswordCommand: NotRequired[list[str] | None | None]
    """A command whose first line of output is the password of the store: the program, then its arguments. No shell
    reads it. It runs for each connection.
    """


@final
class SettingsPatchCompaction(TypedDict):
    enabled: NotRequired[bool | None]
    """Compacts automatically."""
    strategy: NotRequired[Strategy | None]
    """The action at the threshold."""
    reserveTokens: NotRequired[int | None]
    """Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller
    window.
    """
    keepRecentTokens: NotRequired[int | None]
    """Tokens of the newest messages that stay as they are; 0 keeps none."""
    thresholdPercent: NotRequired[int | None]
    """Threshold in percent of the window; −1: none."""
    thresholdTokens: NotRequired[int | None]
    """Threshold in tokens; −1: none."""
    autoContinue: NotRequired[bool | None]
    """Continues a daemon-driven session after a compaction."""
    midTurn: NotRequired[bool | None]
    """Allows a compaction between the tool calls of a turn."""
    remoteEnabled: NotRequired[bool | None]
    """Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also
    allows that of another provider whose models are asked by `openai_responses`.
    """
    remoteEndpoint: NotRequired[str | None]
    """URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}`
    answers it. It is asked before the models and gets no key.
    """
    idleEnabled: NotRequired[bool | None]
    """Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an
    answer that reports cached tokens.
    """
    idleThresholdTokens: NotRequired[int | None]
    """The smallest context that is compacted while the user is away, in tokens."""
    idleTimeoutSeconds: NotRequired[int | None]
    """Time without activity after which the user counts as away, in seconds."""
    speculative: NotRequired[Speculative | None]
    """Drafts summaries ahead."""
    stallSeconds: NotRequired[int | None]
    """Time without progress of an answer after which the next candidate is asked, in seconds."""
    deadlineSeconds: NotRequired[int | None]
    """The longest automatic maintenance, in seconds."""
    maxConcurrent: NotRequired[int | None]
    """The most summaries at the same time, over all sessions."""
    maxTokensPerHour: NotRequired[int | None]
    """The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries
    are extracted without a model. The file of a project can only make it smaller.
    """
    models: NotRequired[list[str] | None]
    """`"provider/id"` of each summarizer, in order."""
    style: NotRequired[Style | None]
    """The layout of a compacted context."""
    transcriptHint: NotRequired[bool | None]
    """Ends the frame of a summary with a line that names the file of the session, where the whole conversation is."""
    rehydrate: NotRequired[bool | None]
    """Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and
    instructions that the agent loaded in the summarized part. Those that stood in tool results stay in the context:
    at most 5,000 tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
    """
    coldResume: NotRequired[ColdResumption | None]
    """The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose
    context is over `coldResumeTokens`.
    """
    coldResumeTokens: NotRequired[int | None]
    """Size over which a context with a cold cache is large, in tokens; −1: half of the threshold."""


@final
class SettingsPatchPrune(TypedDict):
    protectTokens: NotRequired[int | None]
    """Tokens of the newest results that stay."""
    minimumSavings: NotRequired[int | None]
    """The least tokens for which results are pruned."""
    protectedTools: NotRequired[list[str] | None]
    """Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that
    reads a file (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`,
    …). A read of a file that a newer one repeats is pruned all the same.
    """
    cacheSeconds: NotRequired[int | None]
    """Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and at
    least as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
    """


@final
class SettingsPatchTools(TypedDict):
    files: NotRequired[list[FileTool] | None]
    """Tools that touch files. They come before the built-in ones of common agents."""
    todo: NotRequired[list[str] | None]
    """Tools that hold the todo list. They come before the built-in ones."""
    skills: NotRequired[list[str] | None]
    """Tools that load a skill, beside the built-in ones."""


@final
class SettingsPatchBranchSummary(TypedDict):
    enabled: NotRequired[bool | None]
    """The default of `summarize`."""
    reserveTokens: NotRequired[int | None]
    """Tokens that stay free in the summarizer's window."""


@final
class SettingsPatchContextPromotion(TypedDict):
    enabled: NotRequired[bool | None]
    """Switches it on."""


@final
class SettingsPatchRetry(TypedDict):
    enabled: NotRequired[bool | None]
    """Switches it on."""
    maxRetries: NotRequired[int | None]
    """The most retries of a request."""
    baseDelayMs: NotRequired[int | None]
    """The first delay, in milliseconds."""
    maxDelayMs: NotRequired[int | None]
    """The longest delay, in milliseconds."""


@final
class SettingsPatchRedaction(TypedDict):
    enabled: NotRequired[bool | None]
    """Switches it on."""


@final
class SettingsPatchTokens(TypedDict):
    estimator: NotRequired[EstimatorSetting | None]
    """The estimator."""
    learnWindow: NotRequired[bool | None]
    """Learns the window that a provider names in an error."""


@final
class HooksSetParams(TypedDict):
    """Params of `hooks/set`."""

    events: Sequence[HookEvent]
    """The hooks that the client answers, in place of those registered before. An empty list removes the registration."""
    sessionIds: NotRequired[SessionIds | None]
    """Sessions, open or not. They use this registration instead of the default one. Default: the default registration,
    which is for every session without one of its own.
    """
    timeoutMs: NotRequired[HookTimeout | None]
    """Time for an answer. Default: 30,000."""
    onFailure: NotRequired[OnFailure | None]
    """After a hook that failed. Default: `continue`."""


@final
class ToolsSetParams(TypedDict):
    """Params of `tools/set`."""

    sessionId: NotRequired[SessionId | None]
    """Id of the session. Default: all sessions that begin later."""
    tools: Tools
    """The tools. Each has a schema of its arguments."""


@final
class CancelLspParams(TypedDict):
    """Params of `$/cancelRequest`."""

    id: Any
    """Id of the request."""


@final
class CancelAcpParams(TypedDict):
    """Params of `$/cancel_request`."""

    requestId: Any
    """Id of the request."""


@final
class Envelope(TypedDict):
    """Params of `session/event`."""

    sessionId: SessionId
    """Session of the event."""
    epoch: str
    """Run of the daemon."""
    seq: int
    """Number of the event, without gaps within a session and epoch."""
    ts: str
    """Time of the event."""
    durable: bool
    """Whether the event is retained for `session/subscribe`."""
    entryId: NotRequired[EntryId | None]
    """Entry that the event is about."""
    operationId: NotRequired[OperationId | None]
    """Operation that the event is about."""
    turnId: NotRequired[OperationId | None]
    """Turn that the event is about."""
    event: SessionEvent
    """The event."""


@final
class SessionEventEntryAppended(TypedDict):
    """An entry is on disk. An entry that exceeds a frame is announced by its type; its id is in the envelope."""

    type: Literal["entry_appended"]
    entry: NotRequired[Entry | None]
    """The entry."""
    entryType: NotRequired[str | None]
    """Type of an entry that is not sent along."""


@final
class SessionEventCompactionStart(TypedDict):
    """A compaction has started."""

    type: Literal["compaction_start"]
    reason: CompactionReason
    """Reason of the compaction."""
    strategy: CompactionStrategy
    """Strategy of the compaction."""
    tokensBefore: int
    """Size of the context."""
    contextWindow: int
    """Size of the window."""
    thresholdTokens: int
    """Size above which the context is compacted."""
    willRetry: bool
    """Whether the turn is repeated afterwards."""


@final
class SessionEventCompactionProgress(TypedDict):
    """Progress of a compaction. Steps of a stage and the share never fall, also where another model begins anew."""

    type: Literal["compaction_progress"]
    stage: Stage
    """Current stage."""
    done: int
    """Finished steps of the stage. While the summary is made, its requests."""
    total: int
    """Steps of the stage."""
    share: float
    """Part of the whole compaction that is done, from 0 to 1."""
    model: NotRequired[ModelRef | None]
    """Model that writes the summary now."""
    remainingMs: NotRequired[int | None]
    """Time until the summary is made, in milliseconds, from the time of the requests before. Absent before the first
    one is done.
    """


@final
class SessionEventSummaryChunk(TypedDict):
    """A piece of a summary that is being written."""

    type: Literal["summary_chunk"]
    source: ChunkSource
    """Part of the summary."""
    part: int
    """Number of the chunk of the conversation that the text adds, from 1. Each chunk rewrites the text of the source,
    so the newest `part` and `attempt` hold the whole text.
    """
    attempt: int
    """Number of the try of this chunk, from 1. Pieces of earlier tries are void."""
    text: str
    """Text of the piece."""


@final
class SessionEventRetryStart(TypedDict):
    """A model request failed and is sent again after a delay."""

    type: Literal["retry_start"]
    source: RetrySource
    """Purpose of the request."""
    attempt: int
    """Number of the retry, from 1."""
    maxAttempts: int
    """Largest number of retries."""
    delayMs: int
    """Delay, in milliseconds."""
    error: ErrorData
    """Error of the failed request."""
    errorMessage: str
    """The same error for a person."""


@final
class SessionEventRetryEnd(TypedDict):
    """Result of a retry. Each `retry_start` has exactly one."""

    type: Literal["retry_end"]
    source: RetrySource
    """Purpose of the request."""
    success: bool
    """Whether the request was answered."""
    attempt: int
    """Number of the retry."""
    error: NotRequired[ErrorData | None]
    """Error of a failed retry."""
    errorMessage: NotRequired[str | None]
    """The same error for a person."""


@final
class SessionEventCompactionEnd(TypedDict):
    """A compaction has ended. Each `compaction_start` has exactly one."""

    type: Literal["compaction_end"]
    reason: CompactionReason
    """Reason of the compaction."""
    outcome: Outcome
    """Outcome."""
    result: NotRequired[CompactionResult | None]
    """The compaction that was written."""
    newSessionId: NotRequired[SessionId | None]
    """Session that the summary begins, or that continues after a handoff."""
    error: NotRequired[ErrorData | None]
    """Error of a failed compaction."""
    errorMessage: NotRequired[str | None]
    """The same error for a person."""
    skippedReason: NotRequired[WhyNothing | None]
    """Reason of a skipped compaction."""
    willRetry: bool
    """Whether the turn is repeated now."""
    willContinue: bool
    """Whether the session continues without input."""
    durationMs: int
    """Duration, in milliseconds."""
    usage: Usage
    """Fullness of the context."""


@final
class SessionEventRecoveryStart(TypedDict):
    """A turn that failed is being repaired. The compactions of the recovery have its id."""

    type: Literal["recovery_start"]
    reason: RecoveryReason
    """Reason of the recovery."""
    removedEntryId: NotRequired[EntryId | None]
    """The answer that leaves the context."""
    action: RecoveryAction
    """Remedy."""


@final
class SessionEventRecoveryEnd(TypedDict):
    """The end of a recovery."""

    type: Literal["recovery_end"]
    outcome: RecoveryOutcome
    """Outcome."""
    willRetry: bool
    """Whether the turn is to be repeated with the context as it is now."""
    error: NotRequired[ErrorData | None]
    """Error of a failed recovery."""
    errorMessage: NotRequired[str | None]
    """The same error for a person."""


@final
class SessionEventIdleStart(TypedDict):
    """Idle maintenance has started. The status of the session stays `idle`, and the compaction inside has its id."""

    type: Literal["idle_start"]
    contextTokens: int
    """Size of the context."""
    idleSeconds: int
    """Time since the last activity, in seconds."""


@final
class SessionEventIdleEnd(TypedDict):
    """Idle maintenance has ended. Each `idle_start` has exactly one, after the `compaction_end`, which names the error
    of one that failed. Activity cancels it.
    """

    type: Literal["idle_end"]
    outcome: Outcome
    """Outcome."""
    skippedReason: NotRequired[WhyNothing | None]
    """Reason of skipped maintenance, as in `compaction_end`."""


@final
class SessionEventBranchSummaryStart(TypedDict):
    """The summary of a branch has started. The session moves to another branch after it."""

    type: Literal["branch_summary_start"]
    oldLeafId: EntryId | None
    """Leaf of the branch that is left."""
    targetEntryId: EntryId
    """Entry to which the session moves."""
    commonAncestorId: EntryId | None
    """Newest entry of both branches."""
    entryCount: int
    """Number of entries that are left."""


@final
class SessionEventBranchSummaryEnd(TypedDict):
    """The summary of a branch has ended. Each `branch_summary_start` has exactly one. Nothing has changed, if it did
    not complete.
    """

    type: Literal["branch_summary_end"]
    outcome: Outcome
    """Outcome."""
    summaryEntryId: NotRequired[EntryId | None]
    """Entry with the summary."""
    error: NotRequired[ErrorData | None]
    """Error of a failed summary."""
    errorMessage: NotRequired[str | None]
    """The same error for a person."""


@final
class SessionEventTreeChanged(TypedDict):
    """The session has moved to another branch."""

    type: Literal["tree_changed"]
    oldLeafId: EntryId | None
    """Leaf before."""
    newLeafId: EntryId | None
    """Leaf now."""
    summaryEntryId: NotRequired[EntryId | None]
    """Entry with the summary of the branch that was left."""
    label: NotRequired[str | None]
    """Label of the entry with the summary, or of the target."""


@final
class SessionEventHandoffStart(TypedDict):
    """A handoff has started."""

    type: Literal["handoff_start"]
    goal: NotRequired[str | None]
    """Goal of the new session."""


@final
class SessionEventHandoffEnd(TypedDict):
    """A handoff has ended. Each `handoff_start` has exactly one. Without `newSessionId` there is no new session."""

    type: Literal["handoff_end"]
    outcome: Outcome
    """Outcome."""
    newSessionId: NotRequired[SessionId | None]
    """The session that goes on. It is open."""
    error: NotRequired[ErrorData | None]
    """Error of a failed handoff."""
    errorMessage: NotRequired[str | None]
    """The same error for a person."""


@final
class SessionEventSessionReplaced(TypedDict):
    """Another session goes on in the place of this one, which stays as it is. It is the last event of a handoff, also
    after `settled`.
    """

    type: Literal["session_replaced"]
    newSessionId: SessionId
    """The session that goes on."""
    reason: ReplacementReason
    """Reason."""


SessionEventModelChanged = TypedDict(
    "SessionEventModelChanged",
    {
        "type": 'Literal["model_changed"]',
        "from": 'ModelRef | None',
        "to": 'ModelRef',
        "reason": 'ModelChangeReason',
    },
)
"""The session has another model."""


@final
class SessionEventUsageUpdated(TypedDict):
    """The fullness of the context has changed."""

    type: Literal["usage_updated"]
    usage: Usage
    """The whole value."""


@final
class SessionEventStatusChanged(TypedDict):
    """The activity of the session has changed."""

    type: Literal["status_changed"]
    status: Status
    """The whole value."""


@final
class SessionEventPruned(TypedDict):
    """Old tool results were replaced by one line each."""

    type: Literal["pruned"]
    entryIds: list[EntryId]
    """Entries of these results."""
    tokensSaved: int
    """Estimated saving, in tokens."""
    why: str
    """Reason of the pruning."""


@final
class SessionEventHookStart(TypedDict):
    """A hook of the client is called."""

    type: Literal["hook_start"]
    hook: HookEvent
    """Hook."""


@final
class SessionEventHookEnd(TypedDict):
    """A hook has ended. Each `hook_start` has exactly one."""

    type: Literal["hook_end"]
    hook: HookEvent
    """Hook."""
    outcome: HookOutcome
    """Outcome."""
    durationMs: int
    """Time that it took, in milliseconds."""
    errorMessage: NotRequired[str | None]
    """Reason of a cancel or of an error."""


@final
class SessionEventIndexReady(TypedDict):
    """The index is complete. Requests that need it no longer wait."""

    type: Literal["index_ready"]
    entryCount: int
    """Number of entries."""
    title: str | None
    """Title of the session."""
    repairs: list[Repair]
    """Faults of the file that `session/load` has not reported."""


@final
class SessionEventTurnStart(TypedDict):
    """A turn has started. Its id is the `turnId` of the envelope."""

    type: Literal["turn_start"]


@final
class SessionEventTurnEnd(TypedDict):
    """The end of a turn. Each `turn_start` has exactly one."""

    type: Literal["turn_end"]
    outcome: Outcome
    """Outcome: `completed`, `failed` or `cancelled`."""
    stopReason: str | None
    """The stop reason of the last answer; null for a turn without one."""
    usage: Usage
    """Fullness of the context."""
    error: NotRequired[ErrorData | None]
    """Error of a failed turn."""
    errorMessage: NotRequired[str | None]
    """The same error for a person."""


@final
class SessionEventMessageDelta(TypedDict):
    """A piece of the answer that a model is writing. The entry after it has the whole answer."""

    type: Literal["message_delta"]
    contentIndex: int
    """Place of the content block in the message."""
    kind: DeltaKind
    """Kind of the block."""
    text: str
    """The piece."""


@final
class SessionEventToolStart(TypedDict):
    """The client is asked to execute a tool."""

    type: Literal["tool_start"]
    toolCallId: CallId
    """Id of the call."""
    name: str
    """Name of the tool."""
    arguments: CallArguments
    """Arguments of the call."""


@final
class SessionEventToolEnd(TypedDict):
    """A call has its result. Each `tool_start` has exactly one."""

    type: Literal["tool_end"]
    toolCallId: CallId
    """Id of the call."""
    isError: bool
    """Whether the tool failed."""


@final
class SessionEventQueueChanged(TypedDict):
    """The queue of messages has changed."""

    type: Literal["queue_changed"]
    queue: Queue
    """The whole queue."""


@final
class SessionEventSettingsChanged(TypedDict):
    """The settings in force for the session have changed."""

    type: Literal["settings_changed"]
    settings: Settings
    """All settings."""
    sources: dict[str, Source]
    """Source of each value that is not a default, by its dotted key."""


@final
class SessionEventNotice(TypedDict):
    """A message for a person."""

    type: Literal["notice"]
    severity: Severity
    """Severity."""
    code: NoticeCode
    """Its subject, for programs."""
    title: str
    """Message in one line."""
    detail: NotRequired[str | None]
    """Further details."""


@final
class SessionEventSettled(TypedDict):
    """Nothing runs without new input."""

    type: Literal["settled"]
    aborted: bool
    """Whether the last operation was cancelled."""


@final
class ResyncParams(TypedDict):
    """Params of `session/resync_required`."""

    sessionId: SessionId
    """Session whose events were dropped."""
    epoch: str
    """Run of the daemon."""
    lastSeq: int
    """Number of the session's newest event."""
    dropped: int
    """Number of dropped events."""


@final
class SessionsChangedParams(TypedDict):
    """Params of `sessions_changed`."""

    paths: list[str]
    """Files that were created, deleted, or first written by another program."""


@final
class NoticeParams(TypedDict):
    """Params of `notice`."""

    severity: Severity
    """Severity."""
    code: NoticeCode
    """Its subject, for programs."""
    title: str
    """Message in one line."""
    detail: NotRequired[str | None]
    """Further details."""


@final
class BeforeCompactParams(TypedDict):
    """Params of `hook/session_before_compact`."""

    sessionId: SessionId
    """Id of the session."""
    operationId: OperationId
    """Id of the operation."""
    reason: CompactionReason
    """Reason of the compaction."""
    willRetry: bool
    """Whether the turn is repeated after the compaction."""
    instructions: NotRequired[str | None]
    """Instructions of the request: topics to keep above all."""
    preparation: HookPreparation
    """Plan of the compaction."""
    deadlineMs: int | None
    """Time after which the answer is ignored, in milliseconds."""


@final
class HookPreparation(TypedDict):
    """Plan of a compaction, as a hook receives it. `session/entries` and `session/entry` return the messages, also
    during the hook.
    """

    firstKeptEntryId: EntryId | None
    """First entry that would be kept verbatim; null where none would."""
    tokensBefore: int
    """Size of the context now."""
    isSplitTurn: bool
    """Whether the cut is inside a turn."""
    previousSummary: str | None
    """Summary in force, which the new one has to cover."""
    messagesToSummarize: MessageRange
    """Messages in whole turns that would be summarized."""
    turnPrefixMessages: MessageRange
    """Messages that would be summarized from a turn whose end is kept."""
    fileOps: FileOps
    """Files of the summarized messages."""
    previousPreserveData: NotRequired[AnyObject | None]
    """Data that the previous compaction carries for other programs and hooks."""
    settings: CompactionSettings
    """Settings in force."""


@final
class MessageRange(TypedDict):
    """Messages that follow each other on the path."""

    firstEntryId: EntryId | None
    """First message; null where there is none."""
    lastEntryId: EntryId | None
    """Last message; null where there is none."""
    count: int
    """Number of messages."""


@final
class BeforeCompactAnswerContinue(TypedDict):
    """The compaction goes on."""

    action: Literal["continue"]


@final
class BeforeCompactAnswerCancel(TypedDict):
    """The compaction ends with the outcome `cancelled`."""

    action: Literal["cancel"]
    reason: NotRequired[str | None]
    """Reason, for the end event of the hook."""


@final
class BeforeCompactAnswerReplace(TypedDict):
    """The compaction takes this summary. No model is asked."""

    action: Literal["replace"]
    compaction: SuppliedCompaction
    """The compaction."""


@final
class SuppliedCompaction(TypedDict):
    """A compaction that a hook supplies."""

    summary: str
    """Summary of everything before the first kept entry."""
    shortSummary: NotRequired[str | None]
    """Two sentences for a person."""
    firstKeptEntryId: NotRequired[EntryId | None]
    """First entry that stays verbatim. Default: the one of the preparation."""
    details: NotRequired[Any]
    """Any JSON. It is stored as it is and never read for files."""
    preserveData: NotRequired[AnyObject | None]
    """Data that is stored with the compaction. Later compactions carry it on; the key `abridged` is not available."""


@final
class CompactingParams(TypedDict):
    """Params of `hook/session_compacting`."""

    sessionId: SessionId
    """Id of the session."""
    operationId: OperationId
    """Id of the operation."""
    reason: CompactionReason
    """Reason of the compaction."""
    previousPreserveData: NotRequired[AnyObject | None]
    """Data that the previous compaction carries for other programs and hooks."""
    deadlineMs: int | None
    """Time after which the answer is ignored, in milliseconds."""


@final
class CompactingAnswer(TypedDict):
    """Answer of `hook/session_compacting`. Null changes nothing."""

    prompt: NotRequired[str | None]
    """Prompt for the summary. Default: the prompt in force."""
    context: NotRequired[list[str] | None]
    """Lines beside the conversation. Every request for the summary has them."""
    preserveData: NotRequired[AnyObject | None]
    """Data that is stored with the compaction. Later compactions carry it on; the key `abridged` is not available."""


@final
class CompactDraftParams(TypedDict):
    """Params of `hook/session_compact_draft`."""

    sessionId: SessionId
    """Id of the session."""
    operationId: OperationId
    """Id of the operation."""
    reason: CompactionReason
    """Reason of the compaction."""
    draft: ShownDraft
    """The draft."""
    deadlineMs: int | None
    """Time after which the answer is ignored, in milliseconds."""


@final
class BeforeTreeParams(TypedDict):
    """Params of `hook/session_before_tree`."""

    sessionId: SessionId
    """Id of the session."""
    operationId: OperationId
    """Id of the operation."""
    targetEntryId: EntryId
    """Entry to which the leaf moves."""
    oldLeafId: EntryId | None
    """Leaf now; null for a session without entries."""
    commonAncestorId: EntryId | None
    """Newest entry of both branches; null where they have none in common."""
    entriesToSummarize: MessageRange
    """Entries of the branch that is left, after the common ancestor."""
    userWantsSummary: bool
    """Whether a summary of the branch was asked for. A summary of the answer is used only then."""
    instructions: NotRequired[str | None]
    """Instructions of the request: topics to keep above all."""
    deadlineMs: int | None
    """Time after which the answer is ignored, in milliseconds."""


@final
class BeforeTreeAnswerContinue(TypedDict):
    """The leaf moves."""

    action: Literal["continue"]
    instructions: NotRequired[str | None]
    """Instructions for the summary. Default: those of the request."""
    replaceInstructions: NotRequired[bool | None]
    """Whether the instructions take the place of the prompt. Default: the choice of the request."""
    label: NotRequired[str | None]
    """Label of the entry with the summary. Default: that of the request."""


@final
class BeforeTreeAnswerCancel(TypedDict):
    """The leaf stays."""

    action: Literal["cancel"]
    reason: NotRequired[str | None]
    """Reason, for the end event of the hook."""


@final
class BeforeTreeAnswerReplace(TypedDict):
    """The leaf moves with this summary. No model is asked."""

    action: Literal["replace"]
    summary: SuppliedBranchSummary
    """The summary."""
    label: NotRequired[str | None]
    """Label of the entry with the summary. Default: that of the request."""


@final
class SuppliedBranchSummary(TypedDict):
    """The summary of a branch that a hook supplies."""

    summary: str
    """Summary of the branch that is left."""
    details: NotRequired[Any]
    """Any JSON. It is stored as it is and never read for files."""


@final
class ToolCallParams(TypedDict):
    """Params of `tool/call`."""

    sessionId: SessionId
    """Id of the session."""
    turnId: OperationId
    """Id of the turn."""
    toolCallId: CallId
    """Id of the call."""
    name: str
    """Name of the tool."""
    arguments: CallArguments
    """Arguments of the call."""
    deadlineMs: int | None
    """Null: a tool may take any time. The request is cancelled with its turn."""


@final
class ToolCallAnswer(TypedDict):
    """Result of `tool/call`."""

    content: PromptMessage
    """Content blocks, or a text."""
    isError: NotRequired[bool | None]
    """Whether the tool failed."""


@final
class LlmCompleteParams(TypedDict):
    """Params of `llm/complete`."""

    sessionId: SessionId
    """Id of the session."""
    operationId: NotRequired[OperationId | None]
    """Id of the operation; absent for a turn."""
    turnId: NotRequired[OperationId | None]
    """Id of the turn; absent for any other purpose."""
    purpose: Purpose
    """Purpose of the answer."""
    system: str
    """System prompt."""
    messages: list[Message]
    """Messages, in pi's form."""
    tools: NotRequired[list[ToolDefinition] | None]
    """Tools of the conversation. The model may call them in a turn, and in nothing else."""
    maxTokens: int
    """Largest answer, in tokens."""
    model: NotRequired[ModelRef | None]
    """Model to ask. Default: the client's choice."""
    deadlineMs: int | None
    """Time after which the answer is ignored, in milliseconds; null for no limit."""


@final
class ToolDefinition(TypedDict):
    """A tool in the form of this protocol."""

    name: str
    """Name of the tool."""
    description: str
    """Description for the model."""
    inputSchema: NotRequired[dict[str, Any] | None]
    """JSON Schema of the arguments."""


@final
class LlmCompleteAnswer(TypedDict):
    """Result of `llm/complete`."""

    message: AssistantMessage
    """An assistant message with `stopReason`, and with `usage` where it is known."""


@final
class ErrorObject(TypedDict):
    """Error of a response."""

    code: int
    """JSON-RPC's error number."""
    message: str
    """Cause and next step, for a person."""
    data: ErrorData
    """Fields for a program."""


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


HookEvent: TypeAlias = Literal["session_before_compact", "session_compacting", "session_compact_draft", "session_before_tree"]
"""A hook that a client can answer. The request of a hook has the prefix `hook/`, which is accepted here too."""
HookTimeout: TypeAlias = int
"""The time that a client has for the answer to a hook, in milliseconds: 100 to 600,000."""
OnFailure: TypeAlias = Literal["continue", "abort"]
"""The way in which an operation goes on after a hook that failed: no answer in time, an error, a wrong answer, or a
client that is gone.
"""
AnyObject: TypeAlias = Mapping[str, Any]
"""Any object."""
Nothing: TypeAlias = Mapping[str, Any]
"""Empty params."""
Empty: TypeAlias = Mapping[str, Any]
"""An empty result."""
AnyJson: TypeAlias = Any
"""Any JSON value."""
ModelRefInput: TypeAlias = ModelRefInputObject | str
"""A provider's model; also as `"provider/id"`."""
ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model thinks."""
Tools: TypeAlias = Sequence[Mapping[str, Any]]
"""Tools: `{name, description, inputSchema}`, or the form of Anthropic (`input_schema`), of OpenAI (`parameters`, also
below `function`) or of Google (`functionDeclarations`). A provider's own tools are refused: the client adds them to
the request.
"""
Api: TypeAlias = Literal["anthropic", "openai_chat", "openai_responses", "google", "client"]
"""The wire formats."""
Secret: TypeAlias = str
"""A secret text: as JSON and in a log it is `***`."""
Strategy: TypeAlias = Literal["context_full", "handoff", "off"]
"""The action at the threshold."""
Speculative: TypeAlias = Literal["auto"] | bool
"""The drafting of summaries ahead."""
Style: TypeAlias = Literal["structured", "recent_user_messages"]
"""The layout of a compacted context."""
ColdResumption: TypeAlias = Literal["off", "notice", "compact"]
"""The action where a session with a cold prompt cache goes on."""
FileOperation: TypeAlias = Literal["read", "write", "edit", "delete"]
"""An operation on a file."""
EstimatorSetting: TypeAlias = Literal["auto", "chars"]
"""An estimator of tokens."""
SessionId: TypeAlias = str
"""A session: the `id` of its file's header line."""
EntryId: TypeAlias = str
"""One line of a session file after the header."""
StatusKind: TypeAlias = Literal["idle", "running", "compacting", "retrying", "handing_off", "summarizing_branch", "error"]
"""Kinds of activity."""
OperationId: TypeAlias = str
"""One long operation (a compaction, later a handoff, a branch summary) from its start event to its end event."""
UsageSource: TypeAlias = Literal["provider", "estimate"]
"""Source of a context's size."""
AutoCompaction: TypeAlias = Literal["resting"] | bool
"""Whether automatic compaction acts. On the wire it is true, false or `"resting"`."""
Agent: TypeAlias = Literal["pi", "oh_my_pi", "claude_code", "codex", "opencode", "gemini_cli"]
"""A coding agent whose sessions are read."""
OperationName: TypeAlias = Literal["compaction", "recovery", "idle", "speculation", "navigation", "branch_summary", "reference", "handoff", "turn"]
"""Kinds of operations. A later version may add some."""
When: TypeAlias = Literal["now", "after_turn"]
"""Time at which a compaction starts."""
SummaryForm: TypeAlias = Literal["live_request", "transcript"]
"""The form of the requests to a model for a summary."""
Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage | BashExecutionMessage | PythonExecutionMessage | CustomMessage | HookMessage | FileMentionMessage | DeveloperMessage | SystemMessage | BranchSummaryMessage | CompactionSummaryMessage
"""A message in pi's form, told apart by `role`. Fields that are not named here are kept."""
GivenMessage: TypeAlias = Message | Mapping[str, Any]
"""A message in pi's form. With a provider's `format`: a message, item or content of a request to the provider, the
message of its answer, or its whole answer.
"""
Block: TypeAlias = TextBlock | ThinkingBlock | ToolCallBlock | ImageBlock
"""A block of a message, told apart by `type`. A block of another type is an `OtherBlock`: in the `default` of a
`switch (block.type)`, `const other: OtherBlock = block`.
"""
CallArguments: TypeAlias = Mapping[str, Any]
"""Arguments of a call: an object, as far as the model wrote one."""
MessageFormat: TypeAlias = Literal["messages", "anthropic", "openai_chat", "openai_responses", "google"]
"""Format of messages."""
GivenUsage: TypeAlias = Mapping[str, Any]
"""`usage` of the answer; in the format `google`, `usageMetadata`."""
Next: TypeAlias = NextNone | NextMaintenance | NextRetry
"""Maintenance that follows an append, or a change of the model."""
Branch: TypeAlias = Literal["active", "all"]
"""Selection of entries."""
Entry: TypeAlias = MessageEntry | CompactionEntry | BranchSummaryEntry | CustomMessageEntry | CustomEntry | ContextEditEntry | LabelEntry | SessionInfoEntry | TitleChangeEntry | ModelChangeEntry | ThinkingLevelChangeEntry | ResetBoundaryEntry | UsageEntry | ModelUsageEntry
"""An entry of a session file, told apart by `type`, with the fields that this program, pi and oh-my-pi write. A line
of another program may have another type or lack fields; it is an `OtherEntry`: in the `default` of a `switch
(entry.type)`, `const other: OtherEntry = entry`.
"""
WhyCode: TypeAlias = Literal["due", "below", "cold", "off", "undone", "images", "overhead", "unattainable", "too_short", "calls_open", "mid_turn", "resting", "no_progress", "ahead"]
"""The reason why the context is compacted now or not. A later version may add some."""
IdleSkipped: TypeAlias = Literal["busy", "disabled", "below_threshold", "unanswered_call", "unanswered_message", "undone", "resting", "nothing_to_compact", "queued", "cancelled"]
"""The reason why no idle maintenance starts."""
RunIdleAnswer: TypeAlias = RunIdleAnswerOperationId | RunIdleAnswerSkipped
"""Result of `session/run_idle`."""
CompactMethod: TypeAlias = Literal["llm", "extractive"]
"""Method of a summary."""
Initiator: TypeAlias = Literal["user", "agent"]
"""Initiator of a compaction."""
Outcome: TypeAlias = Literal["completed", "failed", "cancelled", "skipped"]
"""Outcome of an operation."""
ThingName: TypeAlias = Literal["session", "entry", "compaction", "pin"]
"""Kinds of things that a request names. A later version may add some."""
WhyNothing: TypeAlias = Literal["already_compacted", "too_short", "would_not_shrink", "below_half_threshold", "superseded"]
"""Reasons why there is nothing to compact."""
ErrorData: TypeAlias = ErrorDataParseError | ErrorDataInvalidRequest | ErrorDataAlreadyInitialized | ErrorDataFrameTooLarge | ErrorDataMethodNotFound | ErrorDataInvalidParams | ErrorDataInternal | ErrorDataRequestCancelled | ErrorDataContentModified | ErrorDataOverloaded | ErrorDataNotFound | ErrorDataBusy | ErrorDataLocked | ErrorDataNothingToCompact | ErrorDataContextOverflow | ErrorDataProviderError | ErrorDataStorageError | ErrorDataNotInitialized | ErrorDataUnsupportedProtocolVersion
"""`error.data`: branch on `code`. With `retryable`, the same request may succeed later."""
CompactAnswer: TypeAlias = CompactAnswerOperationId | CompactAnswerOutcome | CompactAnswerPreparation
"""Result of `session/compact`. The form follows from `wait` and `dryRun`."""
SummaryMethod: TypeAlias = Literal["llm", "remote", "provider_native", "extractive", "hook"]
"""Method of a summary."""
FileUse: TypeAlias = Literal["changed", "read"]
"""The use of a file."""
LoadKind: TypeAlias = Literal["skill", "instructions"]
"""The kind of a text that an agent loads."""
LoadKept: TypeAlias = Literal["whole", "clipped", "none"]
"""The part of a loaded text that a compaction keeps."""
ExtractiveWord: TypeAlias = Literal["extractive"]
"""The word `extractive`."""
Summarizer: TypeAlias = ExtractiveWord | ModelRef
"""Author of a summary."""
PromptBlock: TypeAlias = TextBlock | ImageBlock
"""A block of a message that a client supplies: a text or an image."""
PromptMessage: TypeAlias = str | Sequence[PromptBlock]
"""A message of the user."""
Behavior: TypeAlias = Literal["steer", "follow_up"]
"""The delivery of a message while a turn runs."""
Disposition: TypeAlias = Literal["started", "queued"]
"""The state of a message that was accepted. It is on disk."""
NavigateAnswer: TypeAlias = NavigateAnswerOperationId | NavigateAnswerSummaryEntryId
"""Result of `session/navigate`. The form follows from `wait`."""
ReferenceAnswer: TypeAlias = ReferenceAnswerOperationId | ReferenceAnswerOutcome
"""Result of `session/reference`. The form follows from `wait`."""
HandoffAnswer: TypeAlias = HandoffAnswerOperationId | HandoffAnswerOutcome | HandoffAnswerDocument
"""Result of `session/handoff`. The form follows from `wait` and `dryRun`."""
ForkPosition: TypeAlias = Literal["before", "at"]
"""The end of a fork."""
ExportFormat: TypeAlias = Literal["jsonl", "markdown"]
"""Format of an export."""
Subscription: TypeAlias = Literal["ok", "expired"]
"""Completeness of a subscription."""
KnownBy: TypeAlias = Literal["default", "catalog", "learned", "global", "project", "environment", "session"]
"""The source of a value."""
WindowOrigin: TypeAlias = Literal["refusal", "saturation"]
"""The evidence for a window."""
Source: TypeAlias = Literal["default", "global", "project", "environment", "session"]
"""The source of a value."""
Scope: TypeAlias = Literal["global", "project", "session"]
"""Scope of a change."""
SessionIds: TypeAlias = Sequence[SessionId]
"""The sessions of a registration."""
CompactionReason: TypeAlias = Literal["manual", "threshold", "overflow", "incomplete", "idle", "model_switch"]
"""Reason of a compaction."""
CompactionStrategy: TypeAlias = Literal["context_full", "handoff"]
"""Strategy of a compaction."""
Stage: TypeAlias = Literal["pruning", "hook", "summarizing", "checking", "writing"]
"""Stage of a compaction."""
ChunkSource: TypeAlias = Literal["history", "turn_prefix", "branch", "handoff"]
"""Part of a summary."""
RetrySource: TypeAlias = Literal["turn", "history", "turn_prefix", "short_summary", "branch", "handoff"]
"""Purpose of a model request."""
RecoveryReason: TypeAlias = Literal["overflow", "incomplete"]
"""Reason of a recovery."""
RecoveryAction: TypeAlias = Literal["promote_model", "compact", "handoff", "retry"]
"""Remedy of a recovery."""
RecoveryOutcome: TypeAlias = Literal["recovered", "failed", "cancelled"]
"""Outcome of a recovery."""
ReplacementReason: TypeAlias = Literal["handoff"]
"""Reason for which another session goes on."""
ModelChangeReason: TypeAlias = Literal["promotion", "fallback", "user", "restore"]
"""Reason of a change of the model."""
HookOutcome: TypeAlias = Literal["ok", "cancelled", "replaced", "timeout", "error"]
"""Outcome of a hook."""
DeltaKind: TypeAlias = Literal["text", "thinking", "tool_call"]
"""Kind of a content block."""
CallId: TypeAlias = str
"""A tool call, as the model named it. Not unique within a session: some models number their calls from zero each time."""
Severity: TypeAlias = Literal["info", "warning", "error"]
"""Severity of a notice."""
NoticeCode: TypeAlias = Literal["usage_not_believed", "window_learned", "window_doubted", "windows_not_kept", "cold_resume", "output_limited", "prompt_cut", "answer_cut_off", "messages_shortened", "quality_may_degrade", "speculation_rests", "auto_compaction_resumes", "token_ceiling_reached", "handoff_not_automatic", "handoff_compacted", "document_extracted", "handoff_failed", "navigation_failed", "branch_summary_extracted", "branch_not_summarized", "reference_failed", "reference_extracted", "operation_interrupted", "session_branched", "file_changed", "costs_not_recorded", "after_turn_not_recorded", "context_not_reduced", "failed_answer_kept", "store_away", "store_back", "settings_conflict", "settings_broken", "setting_invalid", "setting_clamped", "setting_unknown", "setting_untrusted", "prompt_invalid", "prompt_unknown", "prompt_untrusted", "hooks_invalid", "params_ignored", "notifications_dropped", "recording_ended", "trace_ended"]
"""The subject of a notice, for programs. The names are stable. A later version may add some, so a reader takes a
notice with another code for one that it has no action for.
"""
SessionEvent: TypeAlias = SessionEventEntryAppended | SessionEventCompactionStart | SessionEventCompactionProgress | SessionEventSummaryChunk | SessionEventRetryStart | SessionEventRetryEnd | SessionEventCompactionEnd | SessionEventRecoveryStart | SessionEventRecoveryEnd | SessionEventIdleStart | SessionEventIdleEnd | SessionEventBranchSummaryStart | SessionEventBranchSummaryEnd | SessionEventTreeChanged | SessionEventHandoffStart | SessionEventHandoffEnd | SessionEventSessionReplaced | SessionEventModelChanged | SessionEventUsageUpdated | SessionEventStatusChanged | SessionEventPruned | SessionEventHookStart | SessionEventHookEnd | SessionEventIndexReady | SessionEventTurnStart | SessionEventTurnEnd | SessionEventMessageDelta | SessionEventToolStart | SessionEventToolEnd | SessionEventQueueChanged | SessionEventSettingsChanged | SessionEventNotice | SessionEventSettled
"""Event of a session."""
BeforeCompactAnswer: TypeAlias = BeforeCompactAnswerContinue | BeforeCompactAnswerCancel | BeforeCompactAnswerReplace
"""Answer of `hook/session_before_compact`. Null is `continue`."""
BeforeTreeAnswer: TypeAlias = BeforeTreeAnswerContinue | BeforeTreeAnswerCancel | BeforeTreeAnswerReplace
"""Answer of `hook/session_before_tree`. Null is `continue`."""
Purpose: TypeAlias = Literal["turn", "compaction", "turn_prefix", "short_summary", "branch_summary", "handoff"]
"""Purpose of a model request."""


T = TypeVar("T")
Answer: TypeAlias = Awaitable[T] | T
"""A callback is a coroutine function, or a function, which runs in a thread."""
ToolCallback: TypeAlias = Callable[[ToolCallParams], Answer[ToolCallAnswer]]
"""Asks the client to execute a tool, in a turn that the daemon runs. Several calls of one answer are sent at once."""
LlmCallback: TypeAlias = Callable[[LlmCompleteParams], Answer[LlmCompleteAnswer]]
"""Asks the client to run a model. Sent only to a client that declared the capability `llm`."""


class Hooks(TypedDict, total=False):
    """The hooks that a client answers."""

    session_before_compact: Callable[[BeforeCompactParams], Answer[BeforeCompactAnswer | None]]
    """Asks whether a compaction goes on, is cancelled, or takes the summary of the answer. Sent after the start event,
    only to a client that registered this hook.
    """
    session_compacting: Callable[[CompactingParams], Answer[CompactingAnswer | None]]
    """Asks for a prompt, lines and data for the summary that is about to be written. Sent only to a client that
    registered this hook.
    """
    session_compact_draft: Callable[[CompactDraftParams], Answer[BeforeCompactAnswer | None]]
    """Asks whether a compaction with this summary is written, is cancelled, or takes the summary of the answer. Sent
    after every check, only to a client that registered this hook, and not for a summary of a hook.
    """
    session_before_tree: Callable[[BeforeTreeParams], Answer[BeforeTreeAnswer | None]]
    """Asks whether the leaf moves to another entry, stays, or takes the summary of the answer. Sent before every
    navigation, only to a client that registered this hook.
    """


class Call(Protocol):
    """Sends a request and returns its result, as a coroutine."""

    @overload
    async def __call__(
        self, method: Literal["ping"], /, *, timeout: float | None = None
    ) -> Empty:
        """Answers immediately, independent of running operations."""
        ...

    @overload
    async def __call__(
        self, method: Literal["rpc.discover"], /, *, timeout: float | None = None
    ) -> AnyJson:
        """Returns this document."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/new"], /, *, timeout: float | None = None, **params: Unpack[NewParams]
    ) -> SessionAnswer:
        """Creates a session."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/load"], /, *, timeout: float | None = None, **params: Unpack[LoadParams]
    ) -> LoadAnswer:
        """Opens a session file of abridged, of any version of pi, or of oh-my-pi, in place. With `readOnly` it also
        opens a session of Claude Code, Codex, OpenCode or Gemini CLI where it lies.
        """
        ...

    @overload
    async def __call__(
        self, method: Literal["session/import"], /, *, timeout: float | None = None, **params: Unpack[ImportParams]
    ) -> ImportAnswer:
        """Makes a session of one of Claude Code, Codex, OpenCode or Gemini CLI, and opens it. The original stays as it
        is.
        """
        ...

    @overload
    async def __call__(
        self, method: Literal["session/list"], /, *, timeout: float | None = None, **params: Unpack[ListParams]
    ) -> ListAnswer:
        """Lists the sessions, newest first, without opening them."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/close"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> None:
        """Closes a session. Running operations are cancelled and send their end events."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/delete"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> None:
        """Deletes a session with its file. Running operations are cancelled and send their end events."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/status"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> StatusAnswer:
        """Returns a session, its queue and its running operations."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/append"], /, *, timeout: float | None = None, **params: Unpack[AppendParams]
    ) -> AppendAnswer:
        """Appends messages of the client's own agent loop. They are on disk when the request is answered."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/context"], /, *, timeout: float | None = None, **params: Unpack[ContextParams]
    ) -> ContextAnswer:
        """Returns the context for the next model request."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/entries"], /, *, timeout: float | None = None, **params: Unpack[EntriesParams]
    ) -> EntriesAnswer:
        """Returns the entries of a session in pages. An entry id is a cursor that stays valid."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/entry"], /, *, timeout: float | None = None, **params: Unpack[EntryParams]
    ) -> EntryAnswer:
        """Returns one entry as it was written, also after a compaction or pruning."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/search"], /, *, timeout: float | None = None, **params: Unpack[SearchParams]
    ) -> SearchAnswer:
        """Finds entries by their text in the whole tree, newest first."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/tree"], /, *, timeout: float | None = None, **params: Unpack[TreeParams]
    ) -> TreeAnswer:
        """Returns every entry of a session as a tree, in pages."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/usage"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> UsageAnswer:
        """Returns the fullness of the context and the reason why it is compacted now or not."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/run_idle"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> RunIdleAnswer:
        """Runs idle maintenance now, independent of its timer and of `compaction.idleEnabled`."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/cancel"], /, *, timeout: float | None = None, **params: Unpack[CancelParams]
    ) -> CancelAnswer:
        """Cancels running operations. Answered immediately."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/compact"], /, *, timeout: float | None = None, **params: Unpack[CompactParams]
    ) -> CompactAnswer:
        """Replaces the older part of the context by a summary. With `dryRun` it returns the plan."""
        ...

    @overload
    async def __call__(
        self, method: Literal["context/fit"], /, *, timeout: float | None = None, **params: Unpack[FitParams]
    ) -> FitAnswer:
        """Fits messages of a client that keeps its own history into a window. Nothing is stored. It is cancelled with
        its request.
        """
        ...

    @overload
    async def __call__(
        self, method: Literal["session/undo_compaction"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> UndoAnswer:
        """Undoes the compaction in force. The context becomes the one without it, including later messages. A reset is
        undone as long as nothing follows it.
        """
        ...

    @overload
    async def __call__(
        self, method: Literal["session/reset"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> ResetAnswer:
        """Clears the context. Entries before the reset stay in the file, and pins stay in the context."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/prompt"], /, *, timeout: float | None = None, **params: Unpack[PromptParams]
    ) -> PromptAnswer:
        """Adds a message of the user and runs a turn: the model is asked, and its calls go to the client as
        `tool/call`, until it answers without calls. While a turn or an operation runs, the message waits in the
        queue.
        """
        ...

    @overload
    async def __call__(
        self, method: Literal["session/continue"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> ContinueAnswer:
        """Runs a turn on the context as it stands."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/navigate"], /, *, timeout: float | None = None, **params: Unpack[NavigateParams]
    ) -> NavigateAnswer:
        """Moves to another entry of the tree, on request with a summary of the branch that is left."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/reference"], /, *, timeout: float | None = None, **params: Unpack[ReferenceParams]
    ) -> ReferenceAnswer:
        """Extracts the knowledge of another session about a question into this one."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/handoff"], /, *, timeout: float | None = None, **params: Unpack[HandoffParams]
    ) -> HandoffAnswer:
        """Begins a new session with a document about this one, which a model writes for the goal. This one stays as it
        is.
        """
        ...

    @overload
    async def __call__(
        self, method: Literal["session/prune"], /, *, timeout: float | None = None, **params: Unpack[PruneParams]
    ) -> PruneAnswer:
        """Replaces old tool results in the context by one line each. The entries stay unchanged."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/pin"], /, *, timeout: float | None = None, **params: Unpack[PinParams]
    ) -> EntryIdAnswer:
        """Pins an entry or a text: every compaction keeps it verbatim."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/unpin"], /, *, timeout: float | None = None, **params: Unpack[PinParams]
    ) -> EntryIdAnswer:
        """Removes a pin."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/label"], /, *, timeout: float | None = None, **params: Unpack[LabelParams]
    ) -> EntryIdAnswer:
        """Sets or removes the label of an entry."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/configure"], /, *, timeout: float | None = None, **params: Unpack[ConfigureParams]
    ) -> ConfigureAnswer:
        """Changes values that are stored with the session: model, system prompt, tools, title."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/fork"], /, *, timeout: float | None = None, **params: Unpack[ForkParams]
    ) -> ForkAnswer:
        """Copies the path to an entry into a new session, compactions included, and opens it. The session itself stays
        as it is.
        """
        ...

    @overload
    async def __call__(
        self, method: Literal["session/clear_queue"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> Queue:
        """Removes and returns the queued messages."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/export"], /, *, timeout: float | None = None, **params: Unpack[ExportParams]
    ) -> ExportAnswer:
        """Exports the session to a file."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/subscribe"], /, *, timeout: float | None = None, **params: Unpack[SubscribeParams]
    ) -> SubscribeAnswer:
        """Subscribes to a session's events, from a given event on. Opening a session subscribes too."""
        ...

    @overload
    async def __call__(
        self, method: Literal["session/unsubscribe"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> None:
        """Unsubscribes from a session's events. They are retained for a later `session/subscribe`."""
        ...

    @overload
    async def __call__(
        self, method: Literal["models/list"], /, *, timeout: float | None = None, **params: Unpack[ModelsListParams]
    ) -> ModelsListAnswer:
        """Lists models with their known properties and the source of each."""
        ...

    @overload
    async def __call__(
        self, method: Literal["models/forget"], /, *, timeout: float | None = None, **params: Unpack[ModelsForgetParams]
    ) -> ModelsForgetAnswer:
        """Forgets the windows of a model that its providers taught, in all sessions and for good."""
        ...

    @overload
    async def __call__(
        self, method: Literal["settings/get"], /, *, timeout: float | None = None, **params: Unpack[SettingsGetParams]
    ) -> Sourced:
        """Returns the settings in force, each with its source."""
        ...

    @overload
    async def __call__(
        self, method: Literal["settings/set"], /, *, timeout: float | None = None, **params: Unpack[SettingsSetParams]
    ) -> Sourced:
        """Changes settings by a merge patch in which null removes a value. An invalid patch changes nothing."""
        ...

    @overload
    async def __call__(
        self, method: Literal["hooks/set"], /, *, timeout: float | None = None, **params: Unpack[HooksSetParams]
    ) -> None:
        """Registers the hooks that the client answers, for every session or for some. It holds for every later
        request.
        """
        ...

    @overload
    async def __call__(
        self, method: Literal["tools/set"], /, *, timeout: float | None = None, **params: Unpack[ToolsSetParams]
    ) -> None:
        """Sets the tools of a session, which are stored with it; without `sessionId`, those of sessions that begin
        later without tools of their own. In a turn the client executes them as `tool/call`.
        """
        ...


class SyncCall(Protocol):
    """Sends a request and returns its result."""

    @overload
    def __call__(
        self, method: Literal["ping"], /, *, timeout: float | None = None
    ) -> Empty:
        """Answers immediately, independent of running operations."""
        ...

    @overload
    def __call__(
        self, method: Literal["rpc.discover"], /, *, timeout: float | None = None
    ) -> AnyJson:
        """Returns this document."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/new"], /, *, timeout: float | None = None, **params: Unpack[NewParams]
    ) -> SessionAnswer:
        """Creates a session."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/load"], /, *, timeout: float | None = None, **params: Unpack[LoadParams]
    ) -> LoadAnswer:
        """Opens a session file of abridged, of any version of pi, or of oh-my-pi, in place. With `readOnly` it also
        opens a session of Claude Code, Codex, OpenCode or Gemini CLI where it lies.
        """
        ...

    @overload
    def __call__(
        self, method: Literal["session/import"], /, *, timeout: float | None = None, **params: Unpack[ImportParams]
    ) -> ImportAnswer:
        """Makes a session of one of Claude Code, Codex, OpenCode or Gemini CLI, and opens it. The original stays as it
        is.
        """
        ...

    @overload
    def __call__(
        self, method: Literal["session/list"], /, *, timeout: float | None = None, **params: Unpack[ListParams]
    ) -> ListAnswer:
        """Lists the sessions, newest first, without opening them."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/close"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> None:
        """Closes a session. Running operations are cancelled and send their end events."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/delete"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> None:
        """Deletes a session with its file. Running operations are cancelled and send their end events."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/status"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> StatusAnswer:
        """Returns a session, its queue and its running operations."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/append"], /, *, timeout: float | None = None, **params: Unpack[AppendParams]
    ) -> AppendAnswer:
        """Appends messages of the client's own agent loop. They are on disk when the request is answered."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/context"], /, *, timeout: float | None = None, **params: Unpack[ContextParams]
    ) -> ContextAnswer:
        """Returns the context for the next model request."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/entries"], /, *, timeout: float | None = None, **params: Unpack[EntriesParams]
    ) -> EntriesAnswer:
        """Returns the entries of a session in pages. An entry id is a cursor that stays valid."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/entry"], /, *, timeout: float | None = None, **params: Unpack[EntryParams]
    ) -> EntryAnswer:
        """Returns one entry as it was written, also after a compaction or pruning."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/search"], /, *, timeout: float | None = None, **params: Unpack[SearchParams]
    ) -> SearchAnswer:
        """Finds entries by their text in the whole tree, newest first."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/tree"], /, *, timeout: float | None = None, **params: Unpack[TreeParams]
    ) -> TreeAnswer:
        """Returns every entry of a session as a tree, in pages."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/usage"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> UsageAnswer:
        """Returns the fullness of the context and the reason why it is compacted now or not."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/run_idle"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> RunIdleAnswer:
        """Runs idle maintenance now, independent of its timer and of `compaction.idleEnabled`."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/cancel"], /, *, timeout: float | None = None, **params: Unpack[CancelParams]
    ) -> CancelAnswer:
        """Cancels running operations. Answered immediately."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/compact"], /, *, timeout: float | None = None, **params: Unpack[CompactParams]
    ) -> CompactAnswer:
        """Replaces the older part of the context by a summary. With `dryRun` it returns the plan."""
        ...

    @overload
    def __call__(
        self, method: Literal["context/fit"], /, *, timeout: float | None = None, **params: Unpack[FitParams]
    ) -> FitAnswer:
        """Fits messages of a client that keeps its own history into a window. Nothing is stored. It is cancelled with
        its request.
        """
        ...

    @overload
    def __call__(
        self, method: Literal["session/undo_compaction"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> UndoAnswer:
        """Undoes the compaction in force. The context becomes the one without it, including later messages. A reset is
        undone as long as nothing follows it.
        """
        ...

    @overload
    def __call__(
        self, method: Literal["session/reset"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> ResetAnswer:
        """Clears the context. Entries before the reset stay in the file, and pins stay in the context."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/prompt"], /, *, timeout: float | None = None, **params: Unpack[PromptParams]
    ) -> PromptAnswer:
        """Adds a message of the user and runs a turn: the model is asked, and its calls go to the client as
        `tool/call`, until it answers without calls. While a turn or an operation runs, the message waits in the
        queue.
        """
        ...

    @overload
    def __call__(
        self, method: Literal["session/continue"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> ContinueAnswer:
        """Runs a turn on the context as it stands."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/navigate"], /, *, timeout: float | None = None, **params: Unpack[NavigateParams]
    ) -> NavigateAnswer:
        """Moves to another entry of the tree, on request with a summary of the branch that is left."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/reference"], /, *, timeout: float | None = None, **params: Unpack[ReferenceParams]
    ) -> ReferenceAnswer:
        """Extracts the knowledge of another session about a question into this one."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/handoff"], /, *, timeout: float | None = None, **params: Unpack[HandoffParams]
    ) -> HandoffAnswer:
        """Begins a new session with a document about this one, which a model writes for the goal. This one stays as it
        is.
        """
        ...

    @overload
    def __call__(
        self, method: Literal["session/prune"], /, *, timeout: float | None = None, **params: Unpack[PruneParams]
    ) -> PruneAnswer:
        """Replaces old tool results in the context by one line each. The entries stay unchanged."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/pin"], /, *, timeout: float | None = None, **params: Unpack[PinParams]
    ) -> EntryIdAnswer:
        """Pins an entry or a text: every compaction keeps it verbatim."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/unpin"], /, *, timeout: float | None = None, **params: Unpack[PinParams]
    ) -> EntryIdAnswer:
        """Removes a pin."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/label"], /, *, timeout: float | None = None, **params: Unpack[LabelParams]
    ) -> EntryIdAnswer:
        """Sets or removes the label of an entry."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/configure"], /, *, timeout: float | None = None, **params: Unpack[ConfigureParams]
    ) -> ConfigureAnswer:
        """Changes values that are stored with the session: model, system prompt, tools, title."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/fork"], /, *, timeout: float | None = None, **params: Unpack[ForkParams]
    ) -> ForkAnswer:
        """Copies the path to an entry into a new session, compactions included, and opens it. The session itself stays
        as it is.
        """
        ...

    @overload
    def __call__(
        self, method: Literal["session/clear_queue"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> Queue:
        """Removes and returns the queued messages."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/export"], /, *, timeout: float | None = None, **params: Unpack[ExportParams]
    ) -> ExportAnswer:
        """Exports the session to a file."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/subscribe"], /, *, timeout: float | None = None, **params: Unpack[SubscribeParams]
    ) -> SubscribeAnswer:
        """Subscribes to a session's events, from a given event on. Opening a session subscribes too."""
        ...

    @overload
    def __call__(
        self, method: Literal["session/unsubscribe"], /, *, timeout: float | None = None, **params: Unpack[SessionParams]
    ) -> None:
        """Unsubscribes from a session's events. They are retained for a later `session/subscribe`."""
        ...

    @overload
    def __call__(
        self, method: Literal["models/list"], /, *, timeout: float | None = None, **params: Unpack[ModelsListParams]
    ) -> ModelsListAnswer:
        """Lists models with their known properties and the source of each."""
        ...

    @overload
    def __call__(
        self, method: Literal["models/forget"], /, *, timeout: float | None = None, **params: Unpack[ModelsForgetParams]
    ) -> ModelsForgetAnswer:
        """Forgets the windows of a model that its providers taught, in all sessions and for good."""
        ...

    @overload
    def __call__(
        self, method: Literal["settings/get"], /, *, timeout: float | None = None, **params: Unpack[SettingsGetParams]
    ) -> Sourced:
        """Returns the settings in force, each with its source."""
        ...

    @overload
    def __call__(
        self, method: Literal["settings/set"], /, *, timeout: float | None = None, **params: Unpack[SettingsSetParams]
    ) -> Sourced:
        """Changes settings by a merge patch in which null removes a value. An invalid patch changes nothing."""
        ...

    @overload
    def __call__(
        self, method: Literal["hooks/set"], /, *, timeout: float | None = None, **params: Unpack[HooksSetParams]
    ) -> None:
        """Registers the hooks that the client answers, for every session or for some. It holds for every later
        request.
        """
        ...

    @overload
    def __call__(
        self, method: Literal["tools/set"], /, *, timeout: float | None = None, **params: Unpack[ToolsSetParams]
    ) -> None:
        """Sets the tools of a session, which are stored with it; without `sessionId`, those of sessions that begin
        later without tools of their own. In a turn the client executes them as `tool/call`.
        """
        ...


class On(Protocol):
    """Registers a listener and returns a function that removes it."""

    @overload
    def __call__(
        self, notification: Literal["session/event"], listener: Callable[[Envelope], object], /
    ) -> Callable[[], None]: ...

    @overload
    def __call__(
        self, notification: Literal["session/resync_required"], listener: Callable[[ResyncParams], object], /
    ) -> Callable[[], None]: ...

    @overload
    def __call__(
        self, notification: Literal["sessions_changed"], listener: Callable[[SessionsChangedParams], object], /
    ) -> Callable[[], None]: ...

    @overload
    def __call__(
        self, notification: Literal["settings_changed"], listener: Callable[[Sourced], object], /
    ) -> Callable[[], None]: ...

    @overload
    def __call__(
        self, notification: Literal["notice"], listener: Callable[[NoticeParams], object], /
    ) -> Callable[[], None]: ...

    @overload
    def __call__(
        self, notification: Literal["reconnected"], listener: Callable[[Reconnected], object], /
    ) -> Callable[[], None]: ...
