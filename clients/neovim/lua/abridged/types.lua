---@meta
-- The types of the protocol, for LuaLS. Made from protocol/schema.json by scripts/types.lua; do not edit.
--
-- Unknown fields may come with every object, and unknown values of a union from a newer daemon.

--- A coding agent whose sessions are read.
---@alias abridged.Agent "pi"|"oh_my_pi"|"claude_code"|"codex"|"opencode"|"gemini_cli"

--- Any JSON value.
---@alias abridged.AnyJson any

--- Any object.
---@alias abridged.AnyObject table

--- The wire formats.
---@alias abridged.Api "anthropic"|"openai_chat"|"openai_responses"|"google"|"client"

---@class abridged.AppendAnswer Result of `session/append`.
---@field entryIds abridged.EntryId[] Ids of the new entries, in order.
---@field leafEntryId? abridged.EntryId Leaf after the append.
---@field next abridged.Next Maintenance that follows.
---@field usage abridged.Usage Fullness of the context after the append.

---@class abridged.AppendParams Params of `session/append`.
---@field contextId? string `contextId` of the context that the answer was made for. Default: the last context in a provider's format or with `wait`, else the path before the answer. A report of a context that was rewritten since counts for nothing. The context of another session is invalid, unless this one is a fork that has its entries.
---@field errorMessage? string The provider's error text; the answer failed. With no message, the answer is empty.
---@field expectedLeafId? abridged.EntryId Expected leaf. The request fails if another message or compaction follows this entry.
---@field format? abridged.MessageFormat Format of the messages. Default: `messages`.
---@field messages abridged.GivenMessage[] Messages in the order in which they happened. In a provider's format: messages, items or contents of a request, and answers; a message with several tool results becomes several entries.
---@field parentEntryId? abridged.EntryId Parent of the first entry. Default: the leaf; for a tool result whose call is on another branch, the end of that branch, and the leaf stays.
---@field sessionId abridged.SessionId Id of the session.
---@field stopReason? string Stop reason of that answer, as the provider states it; also `error` or `aborted`.
---@field usage? abridged.GivenUsage Usage of the answer at the end of messages in a provider's format, in the fields of that provider.

---@class abridged.AssistantMessage An answer of a model.
---@field api? string API of the provider.
---@field content string|abridged.Block[] A text, or blocks.
---@field errorMessage? string The provider's text where the request failed.
---@field model? string Model that answered; `unknown` where nobody said it.
---@field provider? string Provider that answered; `unknown` where nobody said it.
---@field role "assistant" Role of the message.
---@field stopReason? string `stop`, `length`, `toolUse`, `error` or `aborted`.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.
---@field usage? abridged.ReportedUsage|table Tokens that the provider reports.

--- Whether automatic compaction acts. On the wire it is true, false or `"resting"`.
---@alias abridged.AutoCompaction boolean|"resting"

---@class abridged.BashExecutionMessage A command that the user ran beside the model.
---@field cancelled? boolean Whether it was cancelled.
---@field command string The command.
---@field excludeFromContext? boolean Whether it is sent to no model.
---@field exitCode? integer Its exit code.
---@field output? string Its output.
---@field role "bashExecution" Role of the message.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.
---@field truncated? boolean Whether the output was cut.

---@class abridged.BeforeCompactAnswer.continue The compaction goes on.
---@field action "continue"

---@class abridged.BeforeCompactAnswer.cancel The compaction ends with the outcome `cancelled`.
---@field action "cancel"
---@field reason? string Reason, for the end event of the hook.

---@class abridged.BeforeCompactAnswer.replace The compaction takes this summary. No model is asked.
---@field action "replace"
---@field compaction abridged.SuppliedCompaction The compaction.

--- Answer of `hook/session_before_compact`. Null is `continue`.
---@alias abridged.BeforeCompactAnswer abridged.BeforeCompactAnswer.continue|abridged.BeforeCompactAnswer.cancel|abridged.BeforeCompactAnswer.replace

---@class abridged.BeforeCompactParams Params of `hook/session_before_compact`.
---@field deadlineMs? integer Time after which the answer is ignored, in milliseconds.
---@field instructions? string Instructions of the request: topics to keep above all.
---@field operationId abridged.OperationId Id of the operation.
---@field preparation abridged.HookPreparation Plan of the compaction.
---@field reason abridged.CompactionReason Reason of the compaction.
---@field sessionId abridged.SessionId Id of the session.
---@field willRetry boolean Whether the turn is repeated after the compaction.

---@class abridged.BeforeTreeAnswer.continue The leaf moves.
---@field action "continue"
---@field instructions? string Instructions for the summary. Default: those of the request.
---@field label? string Label of the entry with the summary. Default: that of the request.
---@field replaceInstructions? boolean Whether the instructions take the place of the prompt. Default: the choice of the request.

---@class abridged.BeforeTreeAnswer.cancel The leaf stays.
---@field action "cancel"
---@field reason? string Reason, for the end event of the hook.

---@class abridged.BeforeTreeAnswer.replace The leaf moves with this summary. No model is asked.
---@field action "replace"
---@field label? string Label of the entry with the summary. Default: that of the request.
---@field summary abridged.SuppliedBranchSummary The summary.

--- Answer of `hook/session_before_tree`. Null is `continue`.
---@alias abridged.BeforeTreeAnswer abridged.BeforeTreeAnswer.continue|abridged.BeforeTreeAnswer.cancel|abridged.BeforeTreeAnswer.replace

---@class abridged.BeforeTreeParams Params of `hook/session_before_tree`.
---@field commonAncestorId? abridged.EntryId Newest entry of both branches; null where they have none in common.
---@field deadlineMs? integer Time after which the answer is ignored, in milliseconds.
---@field entriesToSummarize abridged.MessageRange Entries of the branch that is left, after the common ancestor.
---@field instructions? string Instructions of the request: topics to keep above all.
---@field oldLeafId? abridged.EntryId Leaf now; null for a session without entries.
---@field operationId abridged.OperationId Id of the operation.
---@field sessionId abridged.SessionId Id of the session.
---@field targetEntryId abridged.EntryId Entry to which the leaf moves.
---@field userWantsSummary boolean Whether a summary of the branch was asked for. A summary of the answer is used only then.

--- The delivery of a message while a turn runs.
---@alias abridged.Behavior "steer"|"follow_up"

--- A block of a message, told apart by `type`. A block of another type is an `OtherBlock`: in the `default` of a `switch (block.type)`, `const other: OtherBlock = block`.
---@alias abridged.Block abridged.TextBlock|abridged.ThinkingBlock|abridged.ToolCallBlock|abridged.ImageBlock|abridged.OtherBlock

--- Selection of entries.
---@alias abridged.Branch "active"|"all"

---@class abridged.BranchSummaryEntry A summary of a branch that was left.
---@field details? abridged.SummaryDetails|any Lists of files, or the details of a hook.
---@field fromExtension? boolean Whether a hook or an extension supplied the summary.
---@field fromHook? boolean Whether a hook or an extension supplied the summary.
---@field fromId string Leaf of the branch that was left; `root` for none.
---@field id abridged.EntryId Id of the entry.
---@field method? string Method of the summary, as in `CompactionResult`.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field preserveData? table Data that programs keep for themselves, by their names. That of this program is under `abridged`.
---@field summary string The summary.
---@field timestamp string Time at which it was written.
---@field type "branch_summary" Type of the entry.
---@field usage? abridged.ReportedUsage|table Tokens of the summary, in files of pi.

---@class abridged.BranchSummaryMessage A summary of a branch that is stored as a message.
---@field role "branchSummary" Role of the message.
---@field summary string The summary.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.

---@class abridged.BranchSummarySettings Summaries of branches that are left.
---@field enabled boolean The default of `summarize`.
---@field reserveTokens integer Tokens that stay free in the summarizer's window.

---@class abridged.BranchSummarySettingsInput Summaries of branches that are left.
---@field enabled? boolean The default of `summarize`.
---@field reserveTokens? integer Tokens that stay free in the summarizer's window.

---@class abridged.Breakdown Estimated share of each part of a context.
---@field messages integer Messages.
---@field summary integer Summary.
---@field system integer System prompt.
---@field tools integer Tools.

--- Arguments of a call: an object, as far as the model wrote one.
---@alias abridged.CallArguments table|any

--- A tool call, as the model named it. Not unique within a session: some models number their calls from zero each time.
---@alias abridged.CallId string

---@class abridged.CancelAcpParams Params of `$/cancel_request`.
---@field requestId any Id of the request.

---@class abridged.CancelAnswer Result of `session/cancel`.
---@field cancelled abridged.Cancelled[] Operations that were cancelled.

---@class abridged.CancelLspParams Params of `$/cancelRequest`.
---@field id any Id of the request.

---@class abridged.CancelParams Params of `session/cancel`.
---@field operationId? abridged.OperationId Operation to cancel. Default: every operation of the session.
---@field sessionId abridged.SessionId Id of the session.

---@class abridged.Cancelled A cancelled operation.
---@field kind abridged.OperationName Kind of the operation.
---@field operationId? abridged.OperationId Id of the operation. A turn has a `turnId` in its place.
---@field turnId? abridged.OperationId Id of the turn.

--- Part of a summary.
---@alias abridged.ChunkSource "history"|"turn_prefix"|"branch"|"handoff"

---@class abridged.ClientCapabilities Capabilities of a client.
---@field events? abridged.EventCapabilities Selection of events.
---@field hooks? abridged.HookRegistration Hooks that the client answers, as by `hooks/set` without `sessionIds`. A wrong part is left out, with a `notice`.
---@field llm? abridged.AnyObject The client runs model requests.
---@field modelSwitch? abridged.AnyObject The client asks the model that a context names.
---@field sessionReplaced? abridged.AnyObject The client goes on with the session that `session_replaced` names. Automatic maintenance may hand off then.
---@field tools? abridged.AnyObject The client executes tools.

---@class abridged.ClientInfo Name and version of a client.
---@field name? string Name of the client.
---@field title? string Name for display.
---@field version? string Version of the client.

---@class abridged.ColdResume The cost of the next request of a session whose prompt cache is cold. Costs are in dollars, and absent where no price is known or the model is free. They are those of input: the answer costs the same in any case.
---@field ageSeconds integer Age of the newest answer, in seconds.
---@field cacheSeconds integer The longest time for which the provider keeps a prompt, in seconds.
---@field compactionCost? number Cost of the compaction, if the model of the session writes the summary.
---@field cost? number Cost of the context in the next request.
---@field costAfter? number Cost of the context in the next request after a compaction.
---@field tokens integer Size of the context, which the next request sends anew.
---@field tokensAfter integer Estimated size of the context after a compaction.

--- The action where a session with a cold prompt cache goes on.
---@alias abridged.ColdResumption "off"|"notice"|"compact"

---@class abridged.CompactAnswer.1 The compaction has started. Its events follow.
---@field operationId abridged.OperationId Id of the operation.

---@class abridged.CompactAnswer.2 With `wait`: the compaction has ended.
---@field error? abridged.ErrorData Error of a failed operation.
---@field errorMessage? string Text of the error.
---@field newSessionId? abridged.SessionId Session that the summary begins.
---@field operationId abridged.OperationId Id of the operation.
---@field outcome abridged.Outcome Outcome of the operation.
---@field result? abridged.CompactionResult Compaction that was written.
---@field skippedReason? abridged.WhyNothing Reason of a skipped operation.

---@class abridged.CompactAnswer.3 With `dryRun`: the plan.
---@field draft? abridged.ShownDraft With `draft`: the compaction that would be written.
---@field preparation abridged.Preparation Plan of the compaction.

--- Result of `session/compact`. The form follows from `wait` and `dryRun`.
---@alias abridged.CompactAnswer abridged.CompactAnswer.1|abridged.CompactAnswer.2|abridged.CompactAnswer.3

---@class abridged.CompactDraftParams Params of `hook/session_compact_draft`.
---@field deadlineMs? integer Time after which the answer is ignored, in milliseconds.
---@field draft abridged.ShownDraft The draft.
---@field operationId abridged.OperationId Id of the operation.
---@field reason abridged.CompactionReason Reason of the compaction.
---@field sessionId abridged.SessionId Id of the session.

--- Method of a summary.
---@alias abridged.CompactMethod "llm"|"extractive"

---@class abridged.CompactParams Params of `session/compact`.
---@field apply? boolean Whether the compaction is written. Default: true. False makes the whole result, answers with it at its end, and writes nothing: for a host that applies it itself, also on a read-only session. Hooks are not asked, and it is cancelled with its request.
---@field context? string[] Lines beside the conversation, for the summary. Every request for it has them.
---@field draft? boolean With `dryRun`: makes the summary, too, and asks models for it as the compaction would. It takes its time, and is cancelled with its request.
---@field dryRun? boolean Report the plan without writing.
---@field expectedLeafId? abridged.EntryId Expected leaf. The request fails if another message or compaction follows this entry.
---@field fallback? boolean With `model`: where it writes no summary, the others follow, and at last the extracted summary. Default: false.
---@field initiator? abridged.Initiator Initiator of the request. Default: `user`. An agent is refused below half of the threshold.
---@field instructions? string Instructions for the summary: topics to keep above all.
---@field keepRecentTokens? integer Size of the newest messages that are kept verbatim, without a lower bound. Default: the setting.
---@field leafEntryId? abridged.EntryId With `apply: false` or `dryRun`: the entry that the context ends with. Default: the leaf.
---@field method? abridged.CompactMethod Method of the summary. Default: the setting.
---@field model? abridged.ModelRefInput The model that writes the summary, and no other. Where it writes none, the compaction fails with `provider_error`. Default: the models of the settings, then the session's, then the extracted summary.
---@field newSession? boolean The summary begins a new session, which names this one as its parent. This session stays as it is. Default: false.
---@field sessionId abridged.SessionId Id of the session.
---@field wait? boolean Answer when the compaction has ended.
---@field when? abridged.When Time of the start. Default: `now`.

---@class abridged.CompactingAnswer Answer of `hook/session_compacting`. Null changes nothing.
---@field context? string[] Lines beside the conversation. Every request for the summary has them.
---@field preserveData? abridged.AnyObject Data that is stored with the compaction. Later compactions carry it on; the key `abridged` is not available.
---@field prompt? string Prompt for the summary. Default: the prompt in force.

---@class abridged.CompactingParams Params of `hook/session_compacting`.
---@field deadlineMs? integer Time after which the answer is ignored, in milliseconds.
---@field operationId abridged.OperationId Id of the operation.
---@field previousPreserveData? abridged.AnyObject Data that the previous compaction carries for other programs and hooks.
---@field reason abridged.CompactionReason Reason of the compaction.
---@field sessionId abridged.SessionId Id of the session.

---@class abridged.CompactionEntry A summary that stands for everything before `firstKeptEntryId`.
---@field details? abridged.SummaryDetails|any Lists of files, or the details of a hook.
---@field firstKeptEntryId? abridged.EntryId First entry that is kept verbatim. Its own id keeps none.
---@field fromExtension? boolean Whether a hook or an extension supplied the summary.
---@field fromHook? boolean Whether a hook or an extension supplied the summary.
---@field id abridged.EntryId Id of the entry.
---@field method? string Method of the summary, as in `CompactionResult`.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field preserveData? table Data that programs keep for themselves, by their names. That of this program is under `abridged`.
---@field providerReplayThroughEntryId? abridged.EntryId oh-my-pi sends no entries up to this one.
---@field shortSummary? string Two sentences for a person.
---@field summary string The summary.
---@field systemMessage? abridged.SystemMessage System prompt and tools at that time.
---@field timestamp string Time at which it was written.
---@field tokensAfter? number Size of the context after, in tokens.
---@field tokensBefore number Size of the context before, in tokens.
---@field type "compaction" Type of the entry.
---@field usage? abridged.ReportedUsage|table Tokens of the summary, in files of pi.

---@class abridged.CompactionPatch Keys of `compaction` that differ for one model.
---@field autoContinue? boolean Continues a daemon-driven session after a compaction.
---@field coldResume? abridged.ColdResumption The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose context is over `coldResumeTokens`.
---@field coldResumeTokens? integer Size over which a context with a cold cache is large, in tokens; −1: half of the threshold.
---@field deadlineSeconds? integer The longest automatic maintenance, in seconds.
---@field enabled? boolean Compacts automatically.
---@field idleEnabled? boolean Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an answer that reports cached tokens.
---@field idleThresholdTokens? integer The smallest context that is compacted while the user is away, in tokens.
---@field idleTimeoutSeconds? integer Time without activity after which the user counts as away, in seconds.
---@field keepRecentTokens? integer Tokens of the newest messages that stay as they are; 0 keeps none.
---@field maxConcurrent? integer The most summaries at the same time, over all sessions.
---@field maxTokensPerHour? integer The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries are extracted without a model. The file of a project can only make it smaller.
---@field midTurn? boolean Allows a compaction between the tool calls of a turn.
---@field models? string[] `"provider/id"` of each summarizer, in order.
---@field rehydrate? boolean Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and instructions that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at most 5,000 tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
---@field remoteEnabled? boolean Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also allows that of another provider whose models are asked by `openai_responses`.
---@field remoteEndpoint? string URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}` answers it. It is asked before the models and gets no key.
---@field reserveTokens? integer Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller window.
---@field speculative? abridged.Speculative Drafts summaries ahead.
---@field stallSeconds? integer Time without progress of an answer after which the next candidate is asked, in seconds.
---@field strategy? abridged.Strategy The action at the threshold.
---@field style? abridged.Style The layout of a compacted context.
---@field thresholdPercent? integer Threshold in percent of the window; −1: none.
---@field thresholdTokens? integer Threshold in tokens; −1: none.
---@field transcriptHint? boolean Ends the frame of a summary with a line that names the file of the session, where the whole conversation is.

--- Reason of a compaction.
---@alias abridged.CompactionReason "manual"|"threshold"|"overflow"|"incomplete"|"idle"|"model_switch"

---@class abridged.CompactionResult A completed compaction.
---@field covered abridged.Extent Entries that the summary stands for.
---@field details abridged.SummaryDetails|any Lists of files, or the details of a hook; null where the frame would exceed 60 KiB.
---@field entryId? abridged.EntryId Id of the compaction entry; null with `apply: false`.
---@field firstKeptEntryId? abridged.EntryId First entry that is kept verbatim; null where none is.
---@field form? abridged.SummaryForm Form of the requests to the model of the summary; absent for a method without a model, and for a provider's own compaction.
---@field fromHook boolean Whether a hook supplied the summary.
---@field kept abridged.Extent Entries that are kept verbatim.
---@field lost? abridged.Lost Facts that the summary does not have; null for a conversation that is too large to be read again. They stay in the session.
---@field method abridged.SummaryMethod Method of the summary.
---@field model? abridged.ModelRef Model of the summary; null for a method without a model.
---@field parts? abridged.PartOrigins Origins of the two parts of a split turn's summary, where they differ: one was extracted, or two models wrote them. `method` and `model` are then those of the part by a model, or of the history.
---@field rehydration? abridged.Rehydrated Files and loaded texts to bring back; absent where `compaction.rehydrate` is off, or the frame would exceed 60 KiB.
---@field rejected abridged.Rejected[] Candidates that did not become the summary, or a part of it.
---@field saved? abridged.Saved Savings by the provider's cache; absent where nothing was read from it.
---@field shortSummary? string Two sentences for a person; null like the summary where a hook supplied a long text.
---@field shortened? abridged.ShortenedEntry[] Entries that the compaction cuts or summarizes before any model has read them; absent where there are none. Where the frame would exceed 60 KiB, the last ones are left out: the compaction entry has an edit for each entry that is cut.
---@field summary? string Summary; null where the frame would exceed 60 KiB. `session/entry` returns it whole.
---@field tokensAfter integer Estimated size of the context after.
---@field tokensBefore integer Size of the context before.
---@field usage? abridged.MessageUsage Tokens of all requests to models together; null where none was asked.

---@class abridged.CompactionSettings Compaction of sessions.
---@field autoContinue boolean Continues a daemon-driven session after a compaction.
---@field coldResume abridged.ColdResumption The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose context is over `coldResumeTokens`.
---@field coldResumeTokens integer Size over which a context with a cold cache is large, in tokens; −1: half of the threshold.
---@field deadlineSeconds integer The longest automatic maintenance, in seconds.
---@field enabled boolean Compacts automatically.
---@field idleEnabled boolean Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an answer that reports cached tokens.
---@field idleThresholdTokens integer The smallest context that is compacted while the user is away, in tokens.
---@field idleTimeoutSeconds integer Time without activity after which the user counts as away, in seconds.
---@field keepRecentTokens integer Tokens of the newest messages that stay as they are; 0 keeps none.
---@field maxConcurrent integer The most summaries at the same time, over all sessions.
---@field maxTokensPerHour integer The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries are extracted without a model. The file of a project can only make it smaller.
---@field midTurn boolean Allows a compaction between the tool calls of a turn.
---@field models string[] `"provider/id"` of each summarizer, in order.
---@field rehydrate boolean Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and instructions that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at most 5,000 tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
---@field remoteEnabled boolean Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also allows that of another provider whose models are asked by `openai_responses`.
---@field remoteEndpoint? string URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}` answers it. It is asked before the models and gets no key.
---@field reserveTokens? integer Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller window.
---@field speculative abridged.Speculative Drafts summaries ahead.
---@field stallSeconds integer Time without progress of an answer after which the next candidate is asked, in seconds.
---@field strategy abridged.Strategy The action at the threshold.
---@field style abridged.Style The layout of a compacted context.
---@field thresholdPercent integer Threshold in percent of the window; −1: none.
---@field thresholdTokens integer Threshold in tokens; −1: none.
---@field transcriptHint boolean Ends the frame of a summary with a line that names the file of the session, where the whole conversation is.

---@class abridged.CompactionSettingsInput Compaction of sessions.
---@field autoContinue? boolean Continues a daemon-driven session after a compaction.
---@field coldResume? abridged.ColdResumption The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose context is over `coldResumeTokens`.
---@field coldResumeTokens? integer Size over which a context with a cold cache is large, in tokens; −1: half of the threshold.
---@field deadlineSeconds? integer The longest automatic maintenance, in seconds.
---@field enabled? boolean Compacts automatically.
---@field idleEnabled? boolean Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an answer that reports cached tokens.
---@field idleThresholdTokens? integer The smallest context that is compacted while the user is away, in tokens.
---@field idleTimeoutSeconds? integer Time without activity after which the user counts as away, in seconds.
---@field keepRecentTokens? integer Tokens of the newest messages that stay as they are; 0 keeps none.
---@field maxConcurrent? integer The most summaries at the same time, over all sessions.
---@field maxTokensPerHour? integer The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries are extracted without a model. The file of a project can only make it smaller.
---@field midTurn? boolean Allows a compaction between the tool calls of a turn.
---@field models? string[] `"provider/id"` of each summarizer, in order.
---@field rehydrate? boolean Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and instructions that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at most 5,000 tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
---@field remoteEnabled? boolean Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also allows that of another provider whose models are asked by `openai_responses`.
---@field remoteEndpoint? string URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}` answers it. It is asked before the models and gets no key.
---@field reserveTokens? integer Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller window.
---@field speculative? abridged.Speculative Drafts summaries ahead.
---@field stallSeconds? integer Time without progress of an answer after which the next candidate is asked, in seconds.
---@field strategy? abridged.Strategy The action at the threshold.
---@field style? abridged.Style The layout of a compacted context.
---@field thresholdPercent? integer Threshold in percent of the window; −1: none.
---@field thresholdTokens? integer Threshold in tokens; −1: none.
---@field transcriptHint? boolean Ends the frame of a summary with a line that names the file of the session, where the whole conversation is.

--- Strategy of a compaction.
---@alias abridged.CompactionStrategy "context_full"|"handoff"

---@class abridged.CompactionSummaryMessage A summary of a compaction that is stored as a message.
---@field role "compactionSummary" Role of the message.
---@field summary string The summary.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.

---@class abridged.ConfigureAnswer Result of `session/configure`.
---@field next abridged.Next Maintenance that follows.
---@field session abridged.SessionInfo State of the session.

---@class abridged.ConfigureParams Params of `session/configure`. A missing field stays unchanged, null clears it.
---@field contextWindow? integer Size of the window of the session's model, in tokens, in place of that in `models`; null clears it. It belongs to the model: another model has its own.
---@field maxOutputTokens? integer The longest answer of the session's model, in tokens; null clears it.
---@field model? abridged.ModelRefInput Model from here on. Null is refused: a model cannot be cleared.
---@field sessionId abridged.SessionId Id of the session.
---@field systemPrompt? string System prompt.
---@field thinkingLevel? abridged.ThinkingLevel Thinking level from here on; null for `off`.
---@field title? string Title of the session.
---@field tools? abridged.Tools Tools of the model.

---@class abridged.ContextAnswer Result of `session/context`.
---@field body? abridged.AnyObject Request body, valid for its provider. Present with the other formats. The client adds the streaming flag.
---@field compactionEntryId? abridged.EntryId Compaction in force.
---@field contextId string Id of the context. `session/append` takes it with the answer that was made for the context.
---@field entryIds? (abridged.EntryId)[] Entry of each message; null for the frame of a summary and for a placeholder message.
---@field headers? table<string, string> Headers that the body needs beside those of its provider, by name. A client sends them with the body. Absent if the body needs none.
---@field maxOutputTokens? integer Largest answer that the window and the model leave room for.
---@field messages? abridged.Message[] Messages, valid for a provider. Present with the format `messages`.
---@field model? abridged.ModelRef Model of the context.
---@field usage abridged.Usage Fullness of the context.
---@field why? string The reason for which the provider's own compaction is not in the body, as a sentence. Absent where it is, or where there is none of this provider.

---@class abridged.ContextEditEntry.abridged Mark of an edit for other programs, which changes no context here.
---@field compactionEntryId? abridged.EntryId Compaction that carries the edit.

---@class abridged.ContextEditEntry.replacement.1
---@field content string|abridged.Block[] A text, or blocks.

---@class abridged.ContextEditEntry Another content for an entry, or none. The entry itself stays in the file.
---@field abridged? abridged.ContextEditEntry.abridged Mark of an edit for other programs, which changes no context here.
---@field id abridged.EntryId Id of the entry.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field replacement? abridged.ContextEditEntry.replacement.1 Content in the place of the entry's; null leaves the entry out.
---@field targetId abridged.EntryId Entry that is edited.
---@field timestamp string Time at which it was written.
---@field type "context_edit" Type of the entry.

---@class abridged.ContextFloor Parts that a compaction cannot reduce, in tokens.
---@field latestTurn integer Newest user message and the messages that must stay with it.
---@field pins integer Pins.
---@field system integer System prompt.
---@field tools integer Tools.

---@class abridged.ContextParams Params of `session/context`.
---@field format? abridged.MessageFormat Format of the context. Default: `messages`.
---@field leafEntryId? abridged.EntryId Entry at which the path ends. Default: the leaf. The size of a long context of another entry is estimated by characters (`usage.estimator`), unless the context has to fit.
---@field sessionId abridged.SessionId Id of the session.
---@field wait? boolean Answer after running maintenance has ended. Over the window, and where less than half of the reserve is free for the answer of the model, the request starts the maintenance that is due.

---@class abridged.ContinueAnswer Result of `session/continue`.
---@field turnId abridged.OperationId Id of the turn.

---@class abridged.CustomEntry Data of a program. No model gets it. The line of a broken entry is replaced by one of the type `abridged.corrupt`, whose `parentId` may be missing.
---@field customType string Type of the data, which names its owner.
---@field data? any The data.
---@field id abridged.EntryId Id of the entry.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field timestamp string Time at which it was written.
---@field type "custom" Type of the entry.

---@class abridged.CustomMessage A message of an extension.
---@field content string|abridged.Block[] A text, or blocks.
---@field customType? string Type of the message, which names its owner.
---@field details? any Data of the extension.
---@field display? boolean Whether a program shows it.
---@field role "custom" Role of the message.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.

---@class abridged.CustomMessageEntry A message of an extension. Models get it as a message of the user.
---@field content string|abridged.Block[] A text, or blocks.
---@field customType string Type of the message, which names its owner.
---@field details? any Data of the owner.
---@field display? boolean Whether a program shows it.
---@field id abridged.EntryId Id of the entry.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field timestamp string Time at which it was written.
---@field type "custom_message" Type of the entry.

--- Kind of a content block.
---@alias abridged.DeltaKind "text"|"thinking"|"tool_call"

---@class abridged.DeveloperMessage An instruction of an agent, not of the user.
---@field content string|abridged.Block[] A text, or blocks.
---@field role "developer" Role of the message.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.

--- The state of a message that was accepted. It is on disk.
---@alias abridged.Disposition "started"|"queued"

--- An empty result.
---@alias abridged.Empty table

---@class abridged.EntriesAnswer Result of `session/entries`.
---@field entries abridged.Entry[] Entries of the page.
---@field leafEntryId? abridged.EntryId Leaf of the active path.
---@field nextCursor? abridged.EntryId Cursor of the next page, for `since` or for `before`, whichever the request has; null on the last page. A page with a cursor may be shorter than `limit`.

---@class abridged.EntriesParams Params of `session/entries`.
---@field before? abridged.EntryId Cursor: only entries before this one, the newest page first, each page in file order. An entry id, a `nextCursor`, or `leaf` for the entries up to the end. Not together with `since`.
---@field branch? abridged.Branch Selection of entries. Default: `active`.
---@field limit? integer Largest number of entries. Default: 1,000.
---@field maxBytes? integer Approximate largest size of the page, in bytes; at least one entry is returned. Default: 1 MiB.
---@field sessionId abridged.SessionId Id of the session.
---@field since? abridged.EntryId Cursor: only entries after this one. An entry id, which means the latest entry with that id, or a `nextCursor`.
---@field types? string[] Only entries of these types.

--- An entry of a session file, told apart by `type`, with the fields that this program, pi and oh-my-pi write. A line of another program may have another type or lack fields; it is an `OtherEntry`: in the `default` of a `switch (entry.type)`, `const other: OtherEntry = entry`.
---@alias abridged.Entry abridged.MessageEntry|abridged.CompactionEntry|abridged.BranchSummaryEntry|abridged.CustomMessageEntry|abridged.CustomEntry|abridged.ContextEditEntry|abridged.LabelEntry|abridged.SessionInfoEntry|abridged.TitleChangeEntry|abridged.ModelChangeEntry|abridged.ThinkingLevelChangeEntry|abridged.ResetBoundaryEntry|abridged.UsageEntry|abridged.ModelUsageEntry|abridged.OtherEntry

---@class abridged.EntryAnswer Result of `session/entry`.
---@field entry abridged.Entry The entry as it was written.

--- One line of a session file after the header.
---@alias abridged.EntryId string

---@class abridged.EntryIdAnswer Result of methods that return one entry's id.
---@field entryId abridged.EntryId `session/label`: the entry that holds the label. `session/pin` and `session/unpin`: the pinned entry.

---@class abridged.EntryParams Params of `session/entry`.
---@field entryId abridged.EntryId Id of the entry.
---@field sessionId abridged.SessionId Id of the session.

---@class abridged.Envelope Params of `session/event`.
---@field durable boolean Whether the event is retained for `session/subscribe`.
---@field entryId? abridged.EntryId Entry that the event is about.
---@field epoch string Run of the daemon.
---@field event abridged.SessionEvent The event.
---@field operationId? abridged.OperationId Operation that the event is about.
---@field seq integer Number of the event, without gaps within a session and epoch.
---@field sessionId abridged.SessionId Session of the event.
---@field ts string Time of the event.
---@field turnId? abridged.OperationId Turn that the event is about.

---@class abridged.ErrorData.parse_error The frame is not JSON.
---@field code "parse_error"
---@field retryable boolean

---@class abridged.ErrorData.invalid_request The frame is JSON and not a request.
---@field code "invalid_request"
---@field retryable boolean

---@class abridged.ErrorData.already_initialized `initialize` was sent twice.
---@field code "already_initialized"
---@field retryable boolean

---@class abridged.ErrorData.frame_too_large The frame exceeds the limit and was skipped.
---@field code "frame_too_large"
---@field retryable boolean

---@class abridged.ErrorData.method_not_found The method does not exist.
---@field code "method_not_found"
---@field retryable boolean

---@class abridged.ErrorData.invalid_params The params do not fit the method.
---@field code "invalid_params"
---@field path string Path in the params, for example `messages[1].role`; empty for the params as a whole.
---@field retryable boolean

---@class abridged.ErrorData.internal A defect of the daemon.
---@field code "internal"
---@field retryable boolean

---@class abridged.ErrorData.request_cancelled The client cancelled the request.
---@field code "request_cancelled"
---@field retryable boolean

---@class abridged.ErrorData.content_modified The session's leaf is not the expected one.
---@field code "content_modified"
---@field leafEntryId? abridged.EntryId Current leaf.
---@field retryable boolean

---@class abridged.ErrorData.overloaded Too many requests are in flight.
---@field code "overloaded"
---@field retryAfterMs integer Delay before the next try, in milliseconds.
---@field retryable boolean

---@class abridged.ErrorData.not_found The named thing does not exist.
---@field code "not_found"
---@field kind abridged.ThingName Kind of the thing.
---@field retryable boolean

---@class abridged.ErrorData.busy Another operation runs.
---@field code "busy"
---@field kind abridged.OperationName Kind of that operation.
---@field operationId abridged.OperationId Id of that operation.
---@field retryable boolean

---@class abridged.ErrorData.locked Another process owns the session.
---@field code "locked"
---@field host? string Its machine, where the session is in a store.
---@field pid? integer Its process id, if the lock names one.
---@field retryable boolean
---@field since? string The time since which it owns the session, where that is in a store.

---@class abridged.ErrorData.nothing_to_compact There is nothing to compact.
---@field code "nothing_to_compact"
---@field reason abridged.WhyNothing Reason.
---@field retryable boolean

---@class abridged.ErrorData.context_overflow No compaction makes the context small enough.
---@field code "context_overflow"
---@field contextWindow integer Size of the window, in tokens.
---@field floor abridged.ContextFloor Parts that a compaction cannot reduce.
---@field retryable boolean

---@class abridged.ErrorData.provider_error A model request failed.
---@field code "provider_error"
---@field httpStatus? integer HTTP status of the response, if there was one.
---@field model? string Name of the model at the provider; null for such a service.
---@field provider? string Name of the provider; null for a service of which no model is known.
---@field retryable boolean

---@class abridged.ErrorData.storage_error An operation on a file or on the store failed, or the session is read-only.
---@field code "storage_error"
---@field errno? integer The system's error number, for an error of the operating system.
---@field path string Path of the file.
---@field retryable boolean

---@class abridged.ErrorData.not_initialized The request precedes `initialize`.
---@field code "not_initialized"
---@field retryable boolean

---@class abridged.ErrorData.unsupported_protocol_version The protocol version is not supported.
---@field code "unsupported_protocol_version"
---@field retryable boolean
---@field supported integer[] Supported versions.

--- `error.data`: branch on `code`. With `retryable`, the same request may succeed later.
---@alias abridged.ErrorData abridged.ErrorData.parse_error|abridged.ErrorData.invalid_request|abridged.ErrorData.already_initialized|abridged.ErrorData.frame_too_large|abridged.ErrorData.method_not_found|abridged.ErrorData.invalid_params|abridged.ErrorData.internal|abridged.ErrorData.request_cancelled|abridged.ErrorData.content_modified|abridged.ErrorData.overloaded|abridged.ErrorData.not_found|abridged.ErrorData.busy|abridged.ErrorData.locked|abridged.ErrorData.nothing_to_compact|abridged.ErrorData.context_overflow|abridged.ErrorData.provider_error|abridged.ErrorData.storage_error|abridged.ErrorData.not_initialized|abridged.ErrorData.unsupported_protocol_version

---@class abridged.ErrorObject Error of a response.
---@field code integer JSON-RPC's error number.
---@field data abridged.ErrorData Fields for a program.
---@field message string Cause and next step, for a person.

--- An estimator of tokens.
---@alias abridged.EstimatorSetting "auto"|"chars"

---@class abridged.EventCapabilities Selection of events.
---@field optOut? string[] Event types that are not sent.

---@class abridged.ExportAnswer Result of `session/export`.
---@field path string Path of the file.

--- Format of an export.
---@alias abridged.ExportFormat "jsonl"|"markdown"

---@class abridged.ExportParams Params of `session/export`.
---@field format abridged.ExportFormat Format of the export.
---@field path string Path of the new file. A relative path is below the session's working folder. An existing file is refused.
---@field sessionId abridged.SessionId Id of the session.

---@class abridged.Extent A part of a context.
---@field entries integer Number of its messages.
---@field tokens integer Size of its messages before the compaction, in tokens.

--- The word `extractive`.
---@alias abridged.ExtractiveWord "extractive"

---@class abridged.FileMentionMessage.files
---@field content? string Content of the file.
---@field path? string Path of the file.

---@class abridged.FileMentionMessage Files that the user mentions, in files of oh-my-pi.
---@field files abridged.FileMentionMessage.files[] The files.
---@field role "fileMention" Role of the message.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.

--- An operation on a file.
---@alias abridged.FileOperation "read"|"write"|"edit"|"delete"

---@class abridged.FileOps Files that a conversation touched.
---@field modified string[] Files that were changed.
---@field read string[] Files that were read and not changed.

---@class abridged.FileToRead A file that is worth reading again.
---@field entryId abridged.EntryId The entry with that use: the result of a call.
---@field operation abridged.FileUse The newest use of the file.
---@field path string The file. A relative path of a tool is taken from the session's `cwd`. It is not looked for on the disk.
---@field tokens? integer Size of the file when the session last had it whole, in tokens; null where it never had. The size on the disk may differ.

---@class abridged.FileTool A tool that touches a file.
---@field argument string The argument with the path.
---@field operation abridged.FileOperation The operation on the file.
---@field tool string The tool's name.

--- The use of a file.
---@alias abridged.FileUse "changed"|"read"

---@class abridged.FitAnswer Result of `context/fit`.
---@field firstKeptIndex integer Place of the first kept message among the given ones; their number where none is kept.
---@field messages abridged.GivenMessage[] Messages that fit the window: the summary in messages of its own, then the kept messages as they were given.
---@field method? abridged.SummaryMethod Method of the summary; null where nothing was summarized.
---@field rejected abridged.Rejected[] Candidates that did not become the summary.
---@field summary? string The summary; null where nothing was summarized. The next request gives it back as `previousSummary` with the messages from `firstKeptIndex` on. It ends with the newest request of the user, between the tags `<user-message>`, where that is not among the kept messages.
---@field tokensAfter integer Size of the context after.
---@field tokensBefore integer Size of the context before, with system prompt and tools.

---@class abridged.FitParams Params of `context/fit`.
---@field contextWindow? integer Size of its window, in tokens. Default: that of the model.
---@field format? abridged.MessageFormat Format of the messages, in the params and in the result. Default: `messages`.
---@field instructions? string Instructions for the summary: topics to keep above all.
---@field keepRecentTokens? integer Size of the newest messages that are kept verbatim, in tokens. With it the messages are compacted also where they fit.
---@field maxOutputTokens? integer Its longest answer, in tokens.
---@field messages abridged.GivenMessage[] The messages, oldest first.
---@field model? abridged.ModelRefInput Model that the messages are for. Default: the setting `defaultModel`.
---@field previousSummary? string Summary of the messages before the first one. The new summary continues it.
---@field system? string System prompt beside the messages.
---@field tools? abridged.Tools Tools of the model.

---@class abridged.ForkAnswer Result of `session/fork`.
---@field editorText? string Text of the user's message, or of the `custom_message`, before which the fork ends; null where it ends elsewhere.
---@field session abridged.SessionInfo The new session. It is open, and the client is subscribed to its events.

---@class abridged.ForkParams Params of `session/fork`. Without `entryId` the fork has the whole path to the leaf.
---@field cwd? string Working folder of the fork; an absolute path. Default: that of the session.
---@field entryId? abridged.EntryId Entry at which the fork ends; on any branch. A marker is refused. `at` refuses a tool result that is not the last one of its batch.
---@field position? abridged.ForkPosition Whether the fork ends before that entry or with it. Default: `before`. Without `entryId` it is `at` the leaf.
---@field sessionId abridged.SessionId Id of the session.

--- The end of a fork.
---@alias abridged.ForkPosition "before"|"at"

---@class abridged.GivenMessage.2
---@field role? "user"|"assistant"|"developer"|"tool"|"function"|"model"

--- A message in pi's form. With a provider's `format`: a message, item or content of a request to the provider, the message of its answer, or its whole answer.
---@alias abridged.GivenMessage abridged.Message|abridged.GivenMessage.2

--- `usage` of the answer; in the format `google`, `usageMetadata`.
---@alias abridged.GivenUsage table

---@class abridged.HandoffAnswer.1 The handoff has started. Its events follow.
---@field operationId abridged.OperationId Id of the operation.

---@class abridged.HandoffAnswer.2 With `wait`: the handoff has ended.
---@field document? string The document.
---@field error? abridged.ErrorData Error of a failed operation.
---@field errorMessage? string Text of the error.
---@field newSessionId? abridged.SessionId The session that goes on.
---@field operationId abridged.OperationId Id of the operation.
---@field outcome abridged.Outcome Outcome of the operation.
---@field savedPath? string File with the document, if `save` asked for one.

---@class abridged.HandoffAnswer.3 With `dryRun`: the document.
---@field document string The document.

--- Result of `session/handoff`. The form follows from `wait` and `dryRun`.
---@alias abridged.HandoffAnswer abridged.HandoffAnswer.1|abridged.HandoffAnswer.2|abridged.HandoffAnswer.3

---@class abridged.HandoffParams Params of `session/handoff`.
---@field document? string The document. No model is asked.
---@field dryRun? boolean Return the document without a new session.
---@field goal? string Goal of the new session, of at most 8,000 characters. The document is written for it.
---@field instructions? string Topics that the document keeps above all, in at most 8,000 characters.
---@field model? abridged.ModelRefInput The model that writes the document, and no other. Default: the session's.
---@field save? boolean Save the document as a file beside the new session, too. Default: false.
---@field sessionId abridged.SessionId Id of the session.
---@field wait? boolean Answer when the new session is open.

--- A hook that a client can answer. The request of a hook has the prefix `hook/`, which is accepted here too.
---@alias abridged.HookEvent "session_before_compact"|"session_compacting"|"session_compact_draft"|"session_before_tree"

---@class abridged.HookMessage A message of a hook, in older files of oh-my-pi.
---@field content string|abridged.Block[] A text, or blocks.
---@field role "hookMessage" Role of the message.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.

--- Outcome of a hook.
---@alias abridged.HookOutcome "ok"|"cancelled"|"replaced"|"timeout"|"error"

---@class abridged.HookPreparation Plan of a compaction, as a hook receives it. `session/entries` and `session/entry` return the messages, also during the hook.
---@field fileOps abridged.FileOps Files of the summarized messages.
---@field firstKeptEntryId? abridged.EntryId First entry that would be kept verbatim; null where none would.
---@field isSplitTurn boolean Whether the cut is inside a turn.
---@field messagesToSummarize abridged.MessageRange Messages in whole turns that would be summarized.
---@field previousPreserveData? abridged.AnyObject Data that the previous compaction carries for other programs and hooks.
---@field previousSummary? string Summary in force, which the new one has to cover.
---@field settings abridged.CompactionSettings Settings in force.
---@field tokensBefore integer Size of the context now.
---@field turnPrefixMessages abridged.MessageRange Messages that would be summarized from a turn whose end is kept.

---@class abridged.HookRegistration Hooks that a client answers.
---@field events? abridged.HookEvent[] The hooks. An empty list: none.
---@field onFailure? abridged.OnFailure After a hook that failed. Default: `continue`.
---@field timeoutMs? abridged.HookTimeout Time for an answer. Default: 30,000.

--- The time that a client has for the answer to a hook, in milliseconds: 100 to 600,000.
---@alias abridged.HookTimeout integer

---@class abridged.HooksInForce The hooks in force of a session.
---@field events abridged.HookEvent[] The hooks.
---@field onFailure abridged.OnFailure After a hook that failed.
---@field timeoutMs integer Time for an answer, in milliseconds.

---@class abridged.HooksSetParams Params of `hooks/set`.
---@field events abridged.HookEvent[] The hooks that the client answers, in place of those registered before. An empty list removes the registration.
---@field onFailure? abridged.OnFailure After a hook that failed. Default: `continue`.
---@field sessionIds? abridged.SessionIds Sessions, open or not. They use this registration instead of the default one. Default: the default registration, which is for every session without one of its own.
---@field timeoutMs? abridged.HookTimeout Time for an answer. Default: 30,000.

--- The reason why no idle maintenance starts.
---@alias abridged.IdleSkipped "busy"|"disabled"|"below_threshold"|"unanswered_call"|"unanswered_message"|"undone"|"resting"|"nothing_to_compact"|"queued"|"cancelled"

---@class abridged.ImageBlock An image.
---@field data string The image, in base64.
---@field mimeType string Its type, for example `image/png`.
---@field type "image" Type of the block.

---@class abridged.ImportAnswer Result of `session/import`.
---@field origin abridged.Origin The origin of the session.
---@field repairs abridged.Repair[] Parts of the file that are in no entry, by their kind.
---@field session abridged.SessionInfo The new session. It is open, and the client is subscribed to its events.

---@class abridged.ImportParams Params of `session/import`.
---@field cwd? string Working folder of the session; an absolute path. Default: the one in the file.
---@field path string Path of the session of another agent: of its file, or of OpenCode's database with `#` and the id of the session.
---@field title? string Title of the session. Default: the one in the file.

---@class abridged.InitializeAnswer Result of `initialize`.
---@field capabilities abridged.ServerCapabilities Capabilities of the daemon.
---@field dataDir string Data folder, which holds the sessions.
---@field epoch string Id of this run of the daemon. Event numbers are unique within it.
---@field limits abridged.Limits Limits of the connection.
---@field protocolVersion integer Protocol version of the connection.
---@field serverInfo abridged.ServerInfo Name and version of the daemon.

---@class abridged.InitializeParams Params of `initialize`.
---@field capabilities? abridged.ClientCapabilities Capabilities of the client.
---@field clientInfo? abridged.ClientInfo Name and version of the client.
---@field processId? integer Process of the client. The daemon ends when this process has ended.
---@field protocolVersion? integer Protocol version of the client. Default: 1.

--- Initiator of a compaction.
---@alias abridged.Initiator "user"|"agent"

---@class abridged.Known A value and its source.
---@field source abridged.KnownBy The source.
---@field value integer The value.

--- The source of a value.
---@alias abridged.KnownBy "default"|"catalog"|"learned"|"global"|"project"|"environment"|"session"

---@class abridged.KnownCost Prices in dollars per million tokens, and their source.
---@field cacheRead? number Input that is read from the prompt cache; null where it is unknown.
---@field cacheWrite? number Input that is written to the prompt cache; null where it is unknown, or costs as much as input.
---@field input number Input that is not cached.
---@field output number Output.
---@field source abridged.KnownBy The source.

---@class abridged.LabelEntry A label of an entry.
---@field id abridged.EntryId Id of the entry.
---@field label? string The label. Without one it is removed.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field targetId abridged.EntryId Entry that has the label.
---@field timestamp string Time at which it was written.
---@field type "label" Type of the entry.

---@class abridged.LabelParams Params of `session/label`.
---@field label? string Label, of at most 1024 bytes; null removes it.
---@field sessionId abridged.SessionId Id of the session.
---@field targetEntryId abridged.EntryId Entry to label.

---@class abridged.LearnedWindow A window that a provider taught.
---@field baseUrl? string The `baseUrl` of its server in the settings, without credentials; null where they name none. Absent where an older version learned it: then it counts for every server of the model.
---@field contextWindow integer Size of the window, in tokens.
---@field learnedAt? string Time of the last evidence; null where an older version learned it.
---@field model abridged.ModelRef The model.
---@field origin abridged.WindowOrigin The evidence for it.
---@field refusals integer Number of times that it was taught. From the second one on it counts over a larger window that a host or a setting names, in every session.
---@field session? abridged.SessionId The session in which it was taught last. It counts over a named window there from the beginning.

---@class abridged.Limits Limits of the connection.
---@field maxBatchRequests integer Largest number of members in a batch. A larger batch is refused whole.
---@field maxInFlightRequests integer Largest number of requests in flight. Further requests are refused.
---@field maxInboundFrameBytes integer Largest frame that is read, in bytes. A larger frame is skipped.
---@field softOutboundFrameBytes integer Size below which events and notifications stay, in bytes.

---@class abridged.ListAnswer Result of `session/list`.
---@field nextCursor? string Cursor of the next page; null on the last page.
---@field sessions abridged.ListedSession[] Sessions, newest first.

---@class abridged.ListParams Params of `session/list`.
---@field cursor? string `nextCursor` of the page before.
---@field cwd? string Only sessions with this working folder.
---@field limit? integer Largest number of sessions. Default: 100.
---@field search? string Only sessions with this text in their title, folder or first message.

---@class abridged.ListedModel A model and what is known of it.
---@field api? abridged.Api The wire format.
---@field apiKeyEnv? string The environment variable with the key. Its value is never sent.
---@field baseUrl? string The base URL, without credentials.
---@field contextWindow abridged.Known Size of the window, in tokens.
---@field cost? abridged.KnownCost The prices; null where they are unknown.
---@field default boolean Whether sessions without a model of their own use this model.
---@field id string The model's name at that provider.
---@field learned abridged.LearnedWindow[] The windows that its servers taught, whether they count or not. `models/forget` clears them.
---@field maxOutputTokens? abridged.Known The output limit, in tokens; null where it is unknown.
---@field promoteTo? string `"provider/id"` of a larger model to go to.
---@field provider string The provider's name.

---@class abridged.ListedSession A session in a list.
---@field createdAt string Time at which the session was created.
---@field cwd string Working folder.
---@field entryCount? integer Number of entries; null until the daemon has indexed the file.
---@field parentSession? string File of the session that it comes from, as its header names it; null where it comes from none. The id of that session where it had no file.
---@field parentSessionId? abridged.SessionId Id of the session that it comes from; null where it comes from none, or the name of its file does not tell it.
---@field path string Path of the file.
---@field percent? number Size of the context in percent of the window; null until the daemon has opened the session.
---@field preview? string Beginning of the first user message.
---@field sessionId abridged.SessionId Id of the session.
---@field sizeBytes integer Size of the file, in bytes.
---@field status? abridged.Status Activity; null for a session that is not open in this daemon.
---@field title? string Title.
---@field updatedAt string Time of the last change.

---@class abridged.LlmCompleteAnswer Result of `llm/complete`.
---@field message abridged.AssistantMessage An assistant message with `stopReason`, and with `usage` where it is known.

---@class abridged.LlmCompleteParams Params of `llm/complete`.
---@field deadlineMs? integer Time after which the answer is ignored, in milliseconds; null for no limit.
---@field maxTokens integer Largest answer, in tokens.
---@field messages abridged.Message[] Messages, in pi's form.
---@field model? abridged.ModelRef Model to ask. Default: the client's choice.
---@field operationId? abridged.OperationId Id of the operation; absent for a turn.
---@field purpose abridged.Purpose Purpose of the answer.
---@field sessionId abridged.SessionId Id of the session.
---@field system string System prompt.
---@field tools? abridged.ToolDefinition[] Tools of the conversation. The model may call them in a turn, and in nothing else.
---@field turnId? abridged.OperationId Id of the turn; absent for any other purpose.

---@class abridged.LoadAnswer Result of `session/load`.
---@field indexed boolean Whether the whole file is indexed already.
---@field repairs abridged.Repair[] Faults found in the file, each with the way it was handled.
---@field session abridged.SessionInfo The session.

--- The part of a loaded text that a compaction keeps.
---@alias abridged.LoadKept "whole"|"clipped"|"none"

--- The kind of a text that an agent loads.
---@alias abridged.LoadKind "skill"|"instructions"

---@class abridged.LoadParams Params of `session/load`: one of `sessionId` and `path`.
---@field contextWindow? integer Size of the window of the session's model, in tokens, in place of that in `models`.
---@field maxOutputTokens? integer The longest answer of the session's model, in tokens.
---@field model? abridged.ModelRefInput Model of the session from here on.
---@field path? string Path of a session file.
---@field readOnly? boolean Open without a lock and without the right to write.
---@field sessionId? abridged.SessionId Id of a session in the data folder.
---@field settings? abridged.SettingsInput Settings of this session.
---@field systemPrompt? string System prompt.
---@field tools? abridged.Tools Tools of the model.

---@class abridged.Loaded A skill, or the instructions of a file, that the agent loaded.
---@field entryId abridged.EntryId The entry with the text.
---@field kept abridged.LoadKept The part of the text that stays in the context.
---@field kind abridged.LoadKind The kind.
---@field name string The name of the skill, or of the file.
---@field path? string The file, if the agent named it.
---@field tokens integer Size of the text as it was loaded, in tokens.

---@class abridged.Lost The facts that are not in a summary, the first of each kind. They stay in the session.
---@field errors string[] Errors that are not solved.
---@field files string[] Files that were changed.
---@field rules string[] Rules of the user.
---@field todos string[] Open tasks.

--- A message in pi's form, told apart by `role`. Fields that are not named here are kept.
---@alias abridged.Message abridged.UserMessage|abridged.AssistantMessage|abridged.ToolResultMessage|abridged.BashExecutionMessage|abridged.PythonExecutionMessage|abridged.CustomMessage|abridged.HookMessage|abridged.FileMentionMessage|abridged.DeveloperMessage|abridged.SystemMessage|abridged.BranchSummaryMessage|abridged.CompactionSummaryMessage

---@class abridged.MessageEntry A message of the conversation.
---@field id abridged.EntryId Id of the entry.
---@field message abridged.Message The message.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field timestamp string Time at which it was written.
---@field type "message" Type of the entry.

--- Format of messages.
---@alias abridged.MessageFormat "messages"|"anthropic"|"openai_chat"|"openai_responses"|"google"

---@class abridged.MessageRange Messages that follow each other on the path.
---@field count integer Number of messages.
---@field firstEntryId? abridged.EntryId First message; null where there is none.
---@field lastEntryId? abridged.EntryId Last message; null where there is none.

---@class abridged.MessageUsage Tokens of requests, in the form of a message's `usage`.
---@field cacheRead integer Input that was read from the provider's cache.
---@field cacheWrite integer Input that was written to the provider's cache.
---@field input integer Input that was not cached.
---@field output integer Output.
---@field totalTokens integer All of it.

---@class abridged.ModelChangeEntry The model from here on: `provider` and `modelId`, or `model` in files of oh-my-pi.
---@field id abridged.EntryId Id of the entry.
---@field model? string The model as `provider/id`, in files of oh-my-pi.
---@field modelId? string Id of the model.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field provider? string Provider of the model.
---@field timestamp string Time at which it was written.
---@field type "model_change" Type of the entry.

--- Reason of a change of the model.
---@alias abridged.ModelChangeReason "promotion"|"fallback"|"user"|"restore"

---@class abridged.ModelCost Prices of a model, in dollars per million tokens.
---@field cacheRead? number Input that is read from the prompt cache. Default: a tenth of `input`.
---@field cacheWrite? number Input that is written to the prompt cache. Default: 1.25 × `input` for Anthropic's API, else `input`.
---@field input number Input that is not cached.
---@field output number Output.

---@class abridged.ModelRef A provider's model.
---@field id string
---@field provider string

---@class abridged.ModelRefInput.1 A provider's model.
---@field id string
---@field provider string

--- A provider's model; also as `"provider/id"`.
---@alias abridged.ModelRefInput abridged.ModelRefInput.1|string

---@class abridged.ModelSettings One model.
---@field api? abridged.Api The wire format.
---@field apiKeyCommand? string[] A command whose first line of output is the key: the program, then its arguments. No shell reads it.
---@field apiKeyEnv? string The environment variable with the key.
---@field baseUrl? string The base URL, in the form that the provider's own SDK takes.
---@field compaction? abridged.CompactionPatch Overrides of `compaction` for this model.
---@field contextWindow? integer Size of the window, in tokens.
---@field cost? abridged.ModelCost Its prices. Default: those of the catalog.
---@field headers table<string, abridged.Secret> Headers of every request, by name, for proxies. The values are secret.
---@field id string The model's name at that provider.
---@field maxOutputTokens? integer The longest answer, in tokens.
---@field nativeCompaction? boolean Whether its provider compacts its conversations on demand (Anthropic) or by itself (OpenAI). Default: the answer of the provider, for the providers `anthropic` and `openai` alone.
---@field promoteTo? string `"provider/id"` of the larger model for `contextPromotion`.
---@field provider string The provider's name.
---@field reasoning? boolean True for a model that thinks before it answers. Default: the value of the catalog.

---@class abridged.ModelSettingsInput One model.
---@field api? abridged.Api The wire format.
---@field apiKeyCommand? string[] A command whose first line of output is the key: the program, then its arguments. No shell reads it.
---@field apiKeyEnv? string The environment variable with the key.
---@field baseUrl? string The base URL, in the form that the provider's own SDK takes.
---@field compaction? abridged.CompactionPatch Overrides of `compaction` for this model.
---@field contextWindow? integer Size of the window, in tokens.
---@field cost? abridged.ModelCost Its prices. Default: those of the catalog.
---@field headers? table<string, abridged.Secret> Headers of every request, by name, for proxies. The values are secret.
---@field id? string The model's name at that provider.
---@field maxOutputTokens? integer The longest answer, in tokens.
---@field nativeCompaction? boolean Whether its provider compacts its conversations on demand (Anthropic) or by itself (OpenAI). Default: the answer of the provider, for the providers `anthropic` and `openai` alone.
---@field promoteTo? string `"provider/id"` of the larger model for `contextPromotion`.
---@field provider? string The provider's name.
---@field reasoning? boolean True for a model that thinks before it answers. Default: the value of the catalog.

---@class abridged.ModelUsageEntry The same in files of oh-my-pi.
---@field id abridged.EntryId Id of the entry.
---@field kind? string The same for other programs.
---@field model? string Model that answered.
---@field operationId? string Operation that made the request.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field provider? string Provider that answered.
---@field purpose? string Purpose of the request, as in `llm/complete`.
---@field timestamp string Time at which it was written.
---@field trigger? string Reason of the operation that made the request.
---@field type "model_usage" Type of the entry.
---@field usage? abridged.ReportedUsage|table Tokens that the provider reports.

---@class abridged.ModelsForgetAnswer Result of `models/forget`.
---@field forgotten abridged.LearnedWindow[] The windows that were forgotten, one for each server of the model. Empty where none was learned. A bound that a session keeps for itself, from a refusal without a limit, is forgotten, too, and is not listed.

---@class abridged.ModelsForgetParams Params of `models/forget`.
---@field model abridged.ModelRefInput The model.

---@class abridged.ModelsListAnswer Result of `models/list`.
---@field models abridged.ListedModel[] Models of the settings in their order, then other models in use.

---@class abridged.ModelsListParams Params of `models/list`.
---@field sessionId? abridged.SessionId Session whose own model is listed too.

---@class abridged.NavigateAnswer.1 The navigation has started. Its events follow.
---@field operationId abridged.OperationId Id of the operation.

---@class abridged.NavigateAnswer.2 With `wait`: the navigation has ended.
---@field editorText? string Text of the message before which the conversation goes on; null for any other target.
---@field error? abridged.ErrorData Error of a failed operation.
---@field errorMessage? string Text of the error.
---@field newLeafId? abridged.EntryId Leaf now; null before the first entry.
---@field oldLeafId? abridged.EntryId Leaf before; null for a session without entries.
---@field operationId abridged.OperationId Id of the operation.
---@field outcome abridged.Outcome Outcome of the operation.
---@field summaryEntryId? abridged.EntryId Entry with the summary of the branch that was left.

--- Result of `session/navigate`. The form follows from `wait`.
---@alias abridged.NavigateAnswer abridged.NavigateAnswer.1|abridged.NavigateAnswer.2

---@class abridged.NavigateParams Params of `session/navigate`.
---@field instructions? string Topics that the summary keeps above all. At most 65536 bytes.
---@field label? string Label of the entry with the summary; without a summary, of the target. At most 1024 bytes.
---@field replaceInstructions? boolean The instructions take the place of the prompt. Default: false.
---@field sessionId abridged.SessionId Id of the session.
---@field summarize? boolean Summarize the branch that is left. Default: the setting `branchSummary.enabled`.
---@field targetEntryId abridged.EntryId Entry at which the conversation goes on. For a message of the user it goes on before that message, whose text is in the result.
---@field wait? boolean Answer when the session has moved.

---@class abridged.NewParams Params of `session/new`.
---@field contextWindow? integer Size of the window of the session's model, in tokens, in place of that in `models`.
---@field cwd string Working folder of the session; an absolute path.
---@field ephemeral? boolean Keep the session in memory only.
---@field maxOutputTokens? integer The longest answer of the session's model, in tokens.
---@field model? abridged.ModelRefInput Model of the session. Default: the setting `defaultModel`.
---@field parentSession? string Path of the session that this session continues.
---@field settings? abridged.SettingsInput Settings of this session.
---@field systemPrompt? string System prompt.
---@field thinkingLevel? abridged.ThinkingLevel Thinking level of the model.
---@field title? string Title of the session.
---@field tools? abridged.Tools Tools of the model.

---@class abridged.Next.none No maintenance.
---@field type "none"

---@class abridged.Next.maintenance A maintenance operation. Its events follow.
---@field operationId abridged.OperationId Id of the operation.
---@field reason string Reason of the operation.
---@field type "maintenance"
---@field willContinue boolean Whether the session continues without input afterwards.
---@field willRetry boolean Whether the client repeats the turn afterwards.

---@class abridged.Next.retry The request fits with a smaller answer. Nothing runs.
---@field maxOutputTokens integer Largest answer of the next request, in tokens. The next context carries it.
---@field type "retry"
---@field why string Reason, for a person.
---@field willRetry boolean Always true: the client repeats the turn.

--- Maintenance that follows an append, or a change of the model.
---@alias abridged.Next abridged.Next.none|abridged.Next.maintenance|abridged.Next.retry

--- Empty params.
---@alias abridged.Nothing table

--- The subject of a notice, for programs. The names are stable. A later version may add some, so a reader takes a notice with another code for one that it has no action for.
---@alias abridged.NoticeCode "usage_not_believed"|"window_learned"|"window_doubted"|"windows_not_kept"|"cold_resume"|"output_limited"|"prompt_cut"|"answer_cut_off"|"messages_shortened"|"quality_may_degrade"|"speculation_rests"|"auto_compaction_resumes"|"token_ceiling_reached"|"handoff_not_automatic"|"handoff_compacted"|"document_extracted"|"handoff_failed"|"navigation_failed"|"branch_summary_extracted"|"branch_not_summarized"|"reference_failed"|"reference_extracted"|"operation_interrupted"|"session_branched"|"file_changed"|"costs_not_recorded"|"after_turn_not_recorded"|"context_not_reduced"|"failed_answer_kept"|"store_away"|"store_back"|"settings_conflict"|"settings_broken"|"setting_invalid"|"setting_clamped"|"setting_unknown"|"setting_untrusted"|"prompt_invalid"|"prompt_unknown"|"prompt_untrusted"|"hooks_invalid"|"params_ignored"|"notifications_dropped"|"recording_ended"|"trace_ended"

---@class abridged.NoticeParams Params of `notice`.
---@field code abridged.NoticeCode Its subject, for programs.
---@field detail? string Further details.
---@field severity abridged.Severity Severity.
---@field title string Message in one line.

--- The way in which an operation goes on after a hook that failed: no answer in time, an error, a wrong answer, or a client that is gone.
---@alias abridged.OnFailure "continue"|"abort"

--- One long operation (a compaction, later a handoff, a branch summary) from its start event to its end event.
---@alias abridged.OperationId string

--- Kinds of operations. A later version may add some.
---@alias abridged.OperationName "compaction"|"recovery"|"idle"|"speculation"|"navigation"|"branch_summary"|"reference"|"handoff"|"turn"

---@class abridged.Origin The session of another agent that a session was made of.
---@field agent abridged.Agent The agent that wrote it.
---@field gitBranch? string Branch of the project's git repository, where the file has it.
---@field parentSessionId? string The session of the same agent that it was forked from.
---@field sessionId string Its id in that agent.
---@field version? string Version of the agent, where the file has it.

---@class abridged.OtherBlock A block of a type that this version does not know. It is passed on.
---@field type string Type of the block.

---@class abridged.OtherEntry An entry of a type, or with fields, that this version does not know. It is kept, and adds nothing to a context.
---@field id abridged.EntryId Id of the entry.
---@field parentId? abridged.EntryId Entry that it follows.
---@field type string Type of the entry.

--- Outcome of an operation.
---@alias abridged.Outcome "completed"|"failed"|"cancelled"|"skipped"

---@class abridged.PartOrigin The origin of a part. The default: extracted without a model.
---@field method abridged.SummaryMethod The method of the part.
---@field model? abridged.ModelRef The model that wrote the part; null for a method without a model.

---@class abridged.PartOrigins The origins of the parts of a summary, where they differ.
---@field history abridged.PartOrigin The origin of the whole turns.
---@field turnPrefix abridged.PartOrigin The origin of the beginning of the turn whose end is kept.

---@class abridged.PinParams Params of `session/pin` and `session/unpin`: an entry or a text.
---@field entryId? abridged.EntryId Entry of the conversation.
---@field sessionId abridged.SessionId Id of the session.
---@field text? string Text to pin; it becomes a message.

---@class abridged.Preparation Plan of a compaction.
---@field chunks integer Number of model requests. Each but the first of a long conversation carries the summary so far, whose length is a guess.
---@field fileOps abridged.FileOps Files of the summarized messages.
---@field firstKeptEntryId? abridged.EntryId First entry that would be kept verbatim; null where none would.
---@field isSplitTurn boolean Whether the cut is inside a turn.
---@field messagesToSummarize integer Number of messages in whole turns that would be summarized.
---@field planHash string Fingerprint of the plan: equal plans of one session have equal values.
---@field previousSummary? string Summary in force, which would be merged into the new one.
---@field summarizer abridged.Summarizer Author of the summary.
---@field tokensAfterEstimate integer Upper bound of the context's size after the compaction.
---@field tokensBefore integer Size of the context now.
---@field turnPrefixMessages integer Number of messages that would be summarized from a turn whose end is kept.
---@field warning? abridged.WhyNothing `would_not_shrink` where a summary of the largest size makes nothing smaller. With such a summary the compaction is skipped, unless it has instructions. Absent where the context becomes smaller.

---@class abridged.PromotionSettings Promotion to a larger model instead of a compaction.
---@field enabled boolean Switches it on.

---@class abridged.PromotionSettingsInput Promotion to a larger model instead of a compaction.
---@field enabled? boolean Switches it on.

---@class abridged.PromptAnswer Result of `session/prompt`.
---@field disposition abridged.Disposition Whether the turn has started.
---@field turnId abridged.OperationId Id of the turn that answers the message.

--- A block of a message that a client supplies: a text or an image.
---@alias abridged.PromptBlock abridged.TextBlock|abridged.ImageBlock

--- A message of the user.
---@alias abridged.PromptMessage string|abridged.PromptBlock[]

---@class abridged.PromptParams Params of `session/prompt`.
---@field behavior? abridged.Behavior Delivery while a turn runs. Default: `follow_up`.
---@field message abridged.PromptMessage The message: a text, or content blocks in pi's form (`text` and `image`).
---@field sessionId abridged.SessionId Id of the session.

---@class abridged.PruneAnswer Result of `session/prune`.
---@field entryIds abridged.EntryId[] Entries whose content is replaced by one line.
---@field tokensSaved integer Estimated saving, in tokens.

---@class abridged.PruneParams Params of `session/prune`.
---@field dryRun? boolean Report the effect without writing.
---@field minimumSavings? integer Smallest saving that is worth a change, in tokens. Default: the setting.
---@field protectTokens? integer Size of the newest tool results that stay whole, in tokens. Default: the setting.
---@field sessionId abridged.SessionId Id of the session.

---@class abridged.PruneSettings Pruning of old tool results.
---@field cacheSeconds integer Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and at least as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
---@field minimumSavings integer The least tokens for which results are pruned.
---@field protectTokens integer Tokens of the newest results that stay.
---@field protectedTools string[] Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that reads a file (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`, …). A read of a file that a newer one repeats is pruned all the same.

---@class abridged.PruneSettingsInput Pruning of old tool results.
---@field cacheSeconds? integer Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and at least as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
---@field minimumSavings? integer The least tokens for which results are pruned.
---@field protectTokens? integer Tokens of the newest results that stay.
---@field protectedTools? string[] Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that reads a file (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`, …). A read of a file that a newer one repeats is pruned all the same.

--- Purpose of a model request.
---@alias abridged.Purpose "turn"|"compaction"|"turn_prefix"|"short_summary"|"branch_summary"|"handoff"

---@class abridged.PythonExecutionMessage Python code that the user ran beside the model, in files of oh-my-pi.
---@field code string The code.
---@field excludeFromContext? boolean Whether it is sent to no model.
---@field exitCode? integer Its exit code.
---@field output? string Its output.
---@field role "pythonExecution" Role of the message.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.

---@class abridged.Queue Messages that wait to be sent to the model.
---@field followUp abridged.Queued[] Messages for the end of the turn.
---@field steering abridged.Queued[] Messages for the next pause between two tool calls.

---@class abridged.Queued A queued message.
---@field id string Id of the message.
---@field text string Text of the message.

--- Remedy of a recovery.
---@alias abridged.RecoveryAction "promote_model"|"compact"|"handoff"|"retry"

--- Outcome of a recovery.
---@alias abridged.RecoveryOutcome "recovered"|"failed"|"cancelled"

--- Reason of a recovery.
---@alias abridged.RecoveryReason "overflow"|"incomplete"

---@class abridged.RedactionSettings Redaction of secrets in summaries.
---@field enabled boolean Switches it on.

---@class abridged.RedactionSettingsInput Redaction of secrets in summaries.
---@field enabled? boolean Switches it on.

---@class abridged.ReferenceAnswer.1 The extraction has started. Its events follow.
---@field operationId abridged.OperationId Id of the operation.

---@class abridged.ReferenceAnswer.2 With `wait`: the extraction has ended.
---@field entryId? abridged.EntryId The `custom_message` with the extract.
---@field error? abridged.ErrorData Error of a failed operation.
---@field errorMessage? string Text of the error.
---@field operationId abridged.OperationId Id of the operation.
---@field outcome abridged.Outcome Outcome of the operation.

--- Result of `session/reference`. The form follows from `wait`.
---@alias abridged.ReferenceAnswer abridged.ReferenceAnswer.1|abridged.ReferenceAnswer.2

---@class abridged.ReferenceParams Params of `session/reference`.
---@field fromSessionId abridged.SessionId Id of the session that is read.
---@field question? string The question that the extract answers. Default: everything that helps the conversation of this session.
---@field sessionId abridged.SessionId Id of the session that receives the extract.
---@field wait? boolean Answer when the extract is written.

---@class abridged.Rehydrated Files and texts that the summarized part had, and the context has no more, or only in part.
---@field files abridged.FileToRead[] At most five files that are worth reading again: first the changed ones, from the newest change on, then those that were only read, from the newest read on. A file that was removed, or whose newest form is in the kept part, is not among them.
---@field filesLeftOut integer Number of the other files that the summarized part read or changed.
---@field loaded abridged.Loaded[] At most twenty skills and instructions that the summarized part loaded and the kept part does not, from the newest on.
---@field loadedLeftOut integer Number of the others.

---@class abridged.Rejected A candidate that did not become the summary.
---@field error? abridged.ErrorData Error of the provider, for a candidate that failed with one.
---@field method abridged.SummaryMethod Method of the candidate.
---@field model? abridged.ModelRef Model of the candidate.
---@field why string Reason of the rejection.

---@class abridged.Repair A fault in a session file and the way it was handled.
---@field detail string Fault and handling, for a person.
---@field kind string Kind of the fault, for example `torn_tail` or `corrupt_line`.
---@field line? integer Line number, counted from 1, for a fault of one line.

--- Reason for which another session goes on.
---@alias abridged.ReplacementReason "handoff"

---@class abridged.ReportedCost Cost of a model request, in dollars.
---@field cacheRead? number Cost of cached input.
---@field cacheWrite? number Cost of writing to the cache.
---@field input? number Cost of the input.
---@field output? number Cost of the output.
---@field total? number All of it.

---@class abridged.ReportedUsage Tokens of a model request, as its provider reports them. A count that is missing is zero.
---@field cacheRead? number Input that was read from the provider's cache, in tokens.
---@field cacheWrite? number Input that was written to the provider's cache, in tokens.
---@field cost? abridged.ReportedCost Cost in dollars; zeros where the prices are not known.
---@field input? number Input that was not cached, in tokens.
---@field output? number Output, in tokens.
---@field totalTokens? number All of it, in tokens.

---@class abridged.ResetAnswer Result of `session/reset`.
---@field entryId abridged.EntryId The reset. Nothing before it is in the context, except pins.
---@field leafEntryId? abridged.EntryId Leaf after the reset.
---@field usage abridged.Usage Fullness of the context after the reset.

---@class abridged.ResetBoundaryEntry A `/clear`: nothing before it is in the context.
---@field id abridged.EntryId Id of the entry.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field preserveData? table Data that programs keep for themselves, by their names. That of this program is under `abridged`.
---@field systemMessage? abridged.SystemMessage System prompt and tools at that time.
---@field timestamp string Time at which it was written.
---@field type "reset_boundary" Type of the entry.

---@class abridged.ResyncParams Params of `session/resync_required`.
---@field dropped integer Number of dropped events.
---@field epoch string Run of the daemon.
---@field lastSeq integer Number of the session's newest event.
---@field sessionId abridged.SessionId Session whose events were dropped.

---@class abridged.RetrySettings Retries of transient errors.
---@field baseDelayMs integer The first delay, in milliseconds.
---@field enabled boolean Switches it on.
---@field maxDelayMs integer The longest delay, in milliseconds.
---@field maxRetries integer The most retries of a request.

---@class abridged.RetrySettingsInput Retries of transient errors.
---@field baseDelayMs? integer The first delay, in milliseconds.
---@field enabled? boolean Switches it on.
---@field maxDelayMs? integer The longest delay, in milliseconds.
---@field maxRetries? integer The most retries of a request.

--- Purpose of a model request.
---@alias abridged.RetrySource "turn"|"history"|"turn_prefix"|"short_summary"|"branch"|"handoff"

---@class abridged.RunIdleAnswer.1 The maintenance has started. Its events follow.
---@field operationId abridged.OperationId Id of the operation.

---@class abridged.RunIdleAnswer.2 Nothing starts now.
---@field skipped abridged.IdleSkipped Reason.

--- Result of `session/run_idle`.
---@alias abridged.RunIdleAnswer abridged.RunIdleAnswer.1|abridged.RunIdleAnswer.2

---@class abridged.RunningOperation A running operation.
---@field kind abridged.OperationName Kind of the operation.
---@field operationId abridged.OperationId Id of the operation.
---@field reason string Reason of the operation.
---@field startedAt string Time of its start.

---@class abridged.Saved Savings of requests by the provider's cache.
---@field dollars? number The difference to the price of the same input without a cache, in dollars; null where the prices of the model are not known.
---@field tokens integer Input that was read from the cache, in tokens.

--- Scope of a change.
---@alias abridged.Scope "global"|"project"|"session"

---@class abridged.SearchAnswer Result of `session/search`.
---@field matches abridged.SearchMatch[] Matches, newest first, at most one for each entry.
---@field nextCursor? string Cursor of the next page; null where the whole session was searched.

---@class abridged.SearchMatch An entry that contains the text.
---@field active? boolean Whether the entry is on the active path; null until the file is indexed.
---@field entryId abridged.EntryId Id of the entry.
---@field role? string Role of a message; null for other entries.
---@field snippet string Text around the first match.
---@field timestamp string Timestamp in the file's own form.

---@class abridged.SearchParams Params of `session/search`.
---@field cursor? string `nextCursor` of the page before.
---@field limit? integer Largest number of matches. Default: 50.
---@field query string Text to find, taken literally; case is ignored.
---@field sessionId abridged.SessionId Id of the session.

--- A secret text: as JSON and in a log it is `***`.
---@alias abridged.Secret string

---@class abridged.Seen Position of an event.
---@field epoch string Run of the daemon.
---@field seq integer Number of the event.

---@class abridged.ServerCapabilities Capabilities of the daemon.
---@field compactionMethods string[] Methods of a summary.
---@field contextFormats string[] Formats of `session/context`.
---@field methods string[] Methods that the daemon answers.

---@class abridged.ServerInfo Name and version of the daemon.
---@field name string Always `abridged`.
---@field version string Version of the program.

---@class abridged.SessionAnswer Result of methods that return one session.
---@field session abridged.SessionInfo The session.

---@class abridged.SessionEvent.entry_appended An entry is on disk. An entry that exceeds a frame is announced by its type; its id is in the envelope.
---@field entry? abridged.Entry The entry.
---@field entryType? string Type of an entry that is not sent along.
---@field type "entry_appended"

---@class abridged.SessionEvent.compaction_start A compaction has started.
---@field contextWindow integer Size of the window.
---@field reason abridged.CompactionReason Reason of the compaction.
---@field strategy abridged.CompactionStrategy Strategy of the compaction.
---@field thresholdTokens integer Size above which the context is compacted.
---@field tokensBefore integer Size of the context.
---@field type "compaction_start"
---@field willRetry boolean Whether the turn is repeated afterwards.

---@class abridged.SessionEvent.compaction_progress Progress of a compaction. Steps of a stage and the share never fall, also where another model begins anew.
---@field done integer Finished steps of the stage. While the summary is made, its requests.
---@field model? abridged.ModelRef Model that writes the summary now.
---@field remainingMs? integer Time until the summary is made, in milliseconds, from the time of the requests before. Absent before the first one is done.
---@field share number Part of the whole compaction that is done, from 0 to 1.
---@field stage abridged.Stage Current stage.
---@field total integer Steps of the stage.
---@field type "compaction_progress"

---@class abridged.SessionEvent.summary_chunk A piece of a summary that is being written.
---@field attempt integer Number of the try of this chunk, from 1. Pieces of earlier tries are void.
---@field part integer Number of the chunk of the conversation that the text adds, from 1. Each chunk rewrites the text of the source, so the newest `part` and `attempt` hold the whole text.
---@field source abridged.ChunkSource Part of the summary.
---@field text string Text of the piece.
---@field type "summary_chunk"

---@class abridged.SessionEvent.retry_start A model request failed and is sent again after a delay.
---@field attempt integer Number of the retry, from 1.
---@field delayMs integer Delay, in milliseconds.
---@field error abridged.ErrorData Error of the failed request.
---@field errorMessage string The same error for a person.
---@field maxAttempts integer Largest number of retries.
---@field source abridged.RetrySource Purpose of the request.
---@field type "retry_start"

---@class abridged.SessionEvent.retry_end Result of a retry. Each `retry_start` has exactly one.
---@field attempt integer Number of the retry.
---@field error? abridged.ErrorData Error of a failed retry.
---@field errorMessage? string The same error for a person.
---@field source abridged.RetrySource Purpose of the request.
---@field success boolean Whether the request was answered.
---@field type "retry_end"

---@class abridged.SessionEvent.compaction_end A compaction has ended. Each `compaction_start` has exactly one.
---@field durationMs integer Duration, in milliseconds.
---@field error? abridged.ErrorData Error of a failed compaction.
---@field errorMessage? string The same error for a person.
---@field newSessionId? abridged.SessionId Session that the summary begins, or that continues after a handoff.
---@field outcome abridged.Outcome Outcome.
---@field reason abridged.CompactionReason Reason of the compaction.
---@field result? abridged.CompactionResult The compaction that was written.
---@field skippedReason? abridged.WhyNothing Reason of a skipped compaction.
---@field type "compaction_end"
---@field usage abridged.Usage Fullness of the context.
---@field willContinue boolean Whether the session continues without input.
---@field willRetry boolean Whether the turn is repeated now.

---@class abridged.SessionEvent.recovery_start A turn that failed is being repaired. The compactions of the recovery have its id.
---@field action abridged.RecoveryAction Remedy.
---@field reason abridged.RecoveryReason Reason of the recovery.
---@field removedEntryId? abridged.EntryId The answer that leaves the context.
---@field type "recovery_start"

---@class abridged.SessionEvent.recovery_end The end of a recovery.
---@field error? abridged.ErrorData Error of a failed recovery.
---@field errorMessage? string The same error for a person.
---@field outcome abridged.RecoveryOutcome Outcome.
---@field type "recovery_end"
---@field willRetry boolean Whether the turn is to be repeated with the context as it is now.

---@class abridged.SessionEvent.idle_start Idle maintenance has started. The status of the session stays `idle`, and the compaction inside has its id.
---@field contextTokens integer Size of the context.
---@field idleSeconds integer Time since the last activity, in seconds.
---@field type "idle_start"

---@class abridged.SessionEvent.idle_end Idle maintenance has ended. Each `idle_start` has exactly one, after the `compaction_end`, which names the error of one that failed. Activity cancels it.
---@field outcome abridged.Outcome Outcome.
---@field skippedReason? abridged.WhyNothing Reason of skipped maintenance, as in `compaction_end`.
---@field type "idle_end"

---@class abridged.SessionEvent.branch_summary_start The summary of a branch has started. The session moves to another branch after it.
---@field commonAncestorId? abridged.EntryId Newest entry of both branches.
---@field entryCount integer Number of entries that are left.
---@field oldLeafId? abridged.EntryId Leaf of the branch that is left.
---@field targetEntryId abridged.EntryId Entry to which the session moves.
---@field type "branch_summary_start"

---@class abridged.SessionEvent.branch_summary_end The summary of a branch has ended. Each `branch_summary_start` has exactly one. Nothing has changed, if it did not complete.
---@field error? abridged.ErrorData Error of a failed summary.
---@field errorMessage? string The same error for a person.
---@field outcome abridged.Outcome Outcome.
---@field summaryEntryId? abridged.EntryId Entry with the summary.
---@field type "branch_summary_end"

---@class abridged.SessionEvent.tree_changed The session has moved to another branch.
---@field label? string Label of the entry with the summary, or of the target.
---@field newLeafId? abridged.EntryId Leaf now.
---@field oldLeafId? abridged.EntryId Leaf before.
---@field summaryEntryId? abridged.EntryId Entry with the summary of the branch that was left.
---@field type "tree_changed"

---@class abridged.SessionEvent.handoff_start A handoff has started.
---@field goal? string Goal of the new session.
---@field type "handoff_start"

---@class abridged.SessionEvent.handoff_end A handoff has ended. Each `handoff_start` has exactly one. Without `newSessionId` there is no new session.
---@field error? abridged.ErrorData Error of a failed handoff.
---@field errorMessage? string The same error for a person.
---@field newSessionId? abridged.SessionId The session that goes on. It is open.
---@field outcome abridged.Outcome Outcome.
---@field type "handoff_end"

---@class abridged.SessionEvent.session_replaced Another session goes on in the place of this one, which stays as it is. It is the last event of a handoff, also after `settled`.
---@field newSessionId abridged.SessionId The session that goes on.
---@field reason abridged.ReplacementReason Reason.
---@field type "session_replaced"

---@class abridged.SessionEvent.model_changed The session has another model.
---@field from? abridged.ModelRef The model before.
---@field reason abridged.ModelChangeReason Reason of the change.
---@field to abridged.ModelRef The model now.
---@field type "model_changed"

---@class abridged.SessionEvent.usage_updated The fullness of the context has changed.
---@field type "usage_updated"
---@field usage abridged.Usage The whole value.

---@class abridged.SessionEvent.status_changed The activity of the session has changed.
---@field status abridged.Status The whole value.
---@field type "status_changed"

---@class abridged.SessionEvent.pruned Old tool results were replaced by one line each.
---@field entryIds abridged.EntryId[] Entries of these results.
---@field tokensSaved integer Estimated saving, in tokens.
---@field type "pruned"
---@field why string Reason of the pruning.

---@class abridged.SessionEvent.hook_start A hook of the client is called.
---@field hook abridged.HookEvent Hook.
---@field type "hook_start"

---@class abridged.SessionEvent.hook_end A hook has ended. Each `hook_start` has exactly one.
---@field durationMs integer Time that it took, in milliseconds.
---@field errorMessage? string Reason of a cancel or of an error.
---@field hook abridged.HookEvent Hook.
---@field outcome abridged.HookOutcome Outcome.
---@field type "hook_end"

---@class abridged.SessionEvent.index_ready The index is complete. Requests that need it no longer wait.
---@field entryCount integer Number of entries.
---@field repairs abridged.Repair[] Faults of the file that `session/load` has not reported.
---@field title? string Title of the session.
---@field type "index_ready"

---@class abridged.SessionEvent.turn_start A turn has started. Its id is the `turnId` of the envelope.
---@field type "turn_start"

---@class abridged.SessionEvent.turn_end The end of a turn. Each `turn_start` has exactly one.
---@field error? abridged.ErrorData Error of a failed turn.
---@field errorMessage? string The same error for a person.
---@field outcome abridged.Outcome Outcome: `completed`, `failed` or `cancelled`.
---@field stopReason? string The stop reason of the last answer; null for a turn without one.
---@field type "turn_end"
---@field usage abridged.Usage Fullness of the context.

---@class abridged.SessionEvent.message_delta A piece of the answer that a model is writing. The entry after it has the whole answer.
---@field contentIndex integer Place of the content block in the message.
---@field kind abridged.DeltaKind Kind of the block.
---@field text string The piece.
---@field type "message_delta"

---@class abridged.SessionEvent.tool_start The client is asked to execute a tool.
---@field arguments abridged.CallArguments Arguments of the call.
---@field name string Name of the tool.
---@field toolCallId abridged.CallId Id of the call.
---@field type "tool_start"

---@class abridged.SessionEvent.tool_end A call has its result. Each `tool_start` has exactly one.
---@field isError boolean Whether the tool failed.
---@field toolCallId abridged.CallId Id of the call.
---@field type "tool_end"

---@class abridged.SessionEvent.queue_changed The queue of messages has changed.
---@field queue abridged.Queue The whole queue.
---@field type "queue_changed"

---@class abridged.SessionEvent.settings_changed The settings in force for the session have changed.
---@field settings abridged.Settings All settings.
---@field sources table<string, abridged.Source> Source of each value that is not a default, by its dotted key.
---@field type "settings_changed"

---@class abridged.SessionEvent.notice A message for a person.
---@field code abridged.NoticeCode Its subject, for programs.
---@field detail? string Further details.
---@field severity abridged.Severity Severity.
---@field title string Message in one line.
---@field type "notice"

---@class abridged.SessionEvent.settled Nothing runs without new input.
---@field aborted boolean Whether the last operation was cancelled.
---@field type "settled"

--- Event of a session.
---@alias abridged.SessionEvent abridged.SessionEvent.entry_appended|abridged.SessionEvent.compaction_start|abridged.SessionEvent.compaction_progress|abridged.SessionEvent.summary_chunk|abridged.SessionEvent.retry_start|abridged.SessionEvent.retry_end|abridged.SessionEvent.compaction_end|abridged.SessionEvent.recovery_start|abridged.SessionEvent.recovery_end|abridged.SessionEvent.idle_start|abridged.SessionEvent.idle_end|abridged.SessionEvent.branch_summary_start|abridged.SessionEvent.branch_summary_end|abridged.SessionEvent.tree_changed|abridged.SessionEvent.handoff_start|abridged.SessionEvent.handoff_end|abridged.SessionEvent.session_replaced|abridged.SessionEvent.model_changed|abridged.SessionEvent.usage_updated|abridged.SessionEvent.status_changed|abridged.SessionEvent.pruned|abridged.SessionEvent.hook_start|abridged.SessionEvent.hook_end|abridged.SessionEvent.index_ready|abridged.SessionEvent.turn_start|abridged.SessionEvent.turn_end|abridged.SessionEvent.message_delta|abridged.SessionEvent.tool_start|abridged.SessionEvent.tool_end|abridged.SessionEvent.queue_changed|abridged.SessionEvent.settings_changed|abridged.SessionEvent.notice|abridged.SessionEvent.settled

--- A session: the `id` of its file's header line.
---@alias abridged.SessionId string

--- The sessions of a registration.
---@alias abridged.SessionIds abridged.SessionId[]

---@class abridged.SessionInfo State of a session.
---@field createdAt string Time at which the session was created.
---@field cwd string Working folder.
---@field entryCount? integer Number of entries; null until the file is indexed.
---@field leafEntryId? abridged.EntryId Entry at the end of the active path; the parent of the next entry.
---@field model? abridged.ModelRef Model of the session.
---@field parentSession? string Path of the session that this session continues.
---@field path? string Path of the file; null for an ephemeral session.
---@field sessionId abridged.SessionId Id of the session.
---@field status abridged.Status Activity of the session.
---@field thinkingLevel string Thinking level of the model.
---@field title? string Title.
---@field updatedAt string Time of the last change.
---@field usage abridged.Usage Fullness of the context.

---@class abridged.SessionInfoEntry The title of the session.
---@field id abridged.EntryId Id of the entry.
---@field name? string The title.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field timestamp string Time at which it was written.
---@field type "session_info" Type of the entry.

---@class abridged.SessionParams Params of a method that needs the session alone.
---@field sessionId abridged.SessionId Id of the session.

---@class abridged.SessionsChangedParams Params of `sessions_changed`.
---@field paths string[] Files that were created, deleted, or first written by another program.

---@class abridged.Settings All settings with their defaults. Token counts are in tokens, times in the unit their name ends with. `x-project` is the range of a number in the file of a project that is not trusted. Where −1 stands for none, it is allowed there, too. With `x-outOfRange: "clamped"` the nearest number of the range is used; any other number outside of its range is not used.
---@field branchSummary abridged.BranchSummarySettings Summaries of branches that are left.
---@field compaction abridged.CompactionSettings Compaction of sessions.
---@field contextPromotion abridged.PromotionSettings Promotion to a larger model instead of a compaction.
---@field defaultModel? string `"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be asked.
---@field models abridged.ModelSettings[] The models.
---@field prune abridged.PruneSettings Pruning of old tool results.
---@field redaction abridged.RedactionSettings Redaction of secrets in summaries.
---@field retry abridged.RetrySettings Retries of transient errors.
---@field store? abridged.Secret The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the daemon starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
---@field storePasswordCommand? string[] A command whose first line of output is the password of the store: the program, then its arguments. No shell reads it. It runs for each connection.
---@field tokens abridged.TokenSettings Estimation of tokens.
---@field tools abridged.ToolSettings The tools of agents.
---@field trustedProjects string[] Folders whose project settings are trusted.

---@class abridged.SettingsGetParams Params of `settings/get`.
---@field sessionId? abridged.SessionId Session whose effective settings are returned. Default: the settings outside of sessions.

---@class abridged.SettingsInput All settings with their defaults. Token counts are in tokens, times in the unit their name ends with. `x-project` is the range of a number in the file of a project that is not trusted. Where −1 stands for none, it is allowed there, too. With `x-outOfRange: "clamped"` the nearest number of the range is used; any other number outside of its range is not used.
---@field branchSummary? abridged.BranchSummarySettingsInput Summaries of branches that are left.
---@field compaction? abridged.CompactionSettingsInput Compaction of sessions.
---@field contextPromotion? abridged.PromotionSettingsInput Promotion to a larger model instead of a compaction.
---@field defaultModel? string `"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be asked.
---@field models? abridged.ModelSettingsInput[] The models.
---@field prune? abridged.PruneSettingsInput Pruning of old tool results.
---@field redaction? abridged.RedactionSettingsInput Redaction of secrets in summaries.
---@field retry? abridged.RetrySettingsInput Retries of transient errors.
---@field store? abridged.Secret The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the daemon starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
---@field storePasswordCommand? string[] A command whose first line of output is the password of the store: the program, then its arguments. No shell reads it. It runs for each connection.
---@field tokens? abridged.TokenSettingsInput Estimation of tokens.
---@field tools? abridged.ToolSettingsInput The tools of agents.
---@field trustedProjects? string[] Folders whose project settings are trusted.

---@class abridged.SettingsPatch.branchSummary.1
---@field enabled? boolean The default of `summarize`.
---@field reserveTokens? integer Tokens that stay free in the summarizer's window.

---@class abridged.SettingsPatch.compaction.1
---@field autoContinue? boolean Continues a daemon-driven session after a compaction.
---@field coldResume? abridged.ColdResumption The action where a session goes on whose prompt cache is cold, by the age of its newest report, and whose context is over `coldResumeTokens`.
---@field coldResumeTokens? integer Size over which a context with a cold cache is large, in tokens; −1: half of the threshold.
---@field deadlineSeconds? integer The longest automatic maintenance, in seconds.
---@field enabled? boolean Compacts automatically.
---@field idleEnabled? boolean Compacts while the user is away. It waits while the prompt cache is warm, for `prune.cacheSeconds` after an answer that reports cached tokens.
---@field idleThresholdTokens? integer The smallest context that is compacted while the user is away, in tokens.
---@field idleTimeoutSeconds? integer Time without activity after which the user counts as away, in seconds.
---@field keepRecentTokens? integer Tokens of the newest messages that stay as they are; 0 keeps none.
---@field maxConcurrent? integer The most summaries at the same time, over all sessions.
---@field maxTokensPerHour? integer The most tokens of automatic maintenance for each session and hour; −1: no limit. Beyond it automatic summaries are extracted without a model. The file of a project can only make it smaller.
---@field midTurn? boolean Allows a compaction between the tool calls of a turn.
---@field models? string[] `"provider/id"` of each summarizer, in order.
---@field rehydrate? boolean Names in `rehydration` of a compaction's result the files that are worth reading again and the skills and instructions that the agent loaded in the summarized part. Those that stood in tool results stay in the context: at most 5,000 tokens of each, 25,000 of all, a quarter of the room, and half of the summarized part.
---@field remoteEnabled? boolean Allows the remote endpoint, and the own compaction of the provider `openai`. In `compaction` of a model it also allows that of another provider whose models are asked by `openai_responses`.
---@field remoteEndpoint? string URL of a service that makes summaries: `{systemPrompt, prompt}` is sent by POST, and `{summary, shortSummary?}` answers it. It is asked before the models and gets no key.
---@field reserveTokens? integer Tokens that stay free for the next answer, at most half of the window. Null: 16,384, or a quarter of a smaller window.
---@field speculative? abridged.Speculative Drafts summaries ahead.
---@field stallSeconds? integer Time without progress of an answer after which the next candidate is asked, in seconds.
---@field strategy? abridged.Strategy The action at the threshold.
---@field style? abridged.Style The layout of a compacted context.
---@field thresholdPercent? integer Threshold in percent of the window; −1: none.
---@field thresholdTokens? integer Threshold in tokens; −1: none.
---@field transcriptHint? boolean Ends the frame of a summary with a line that names the file of the session, where the whole conversation is.

---@class abridged.SettingsPatch.contextPromotion.1
---@field enabled? boolean Switches it on.

---@class abridged.SettingsPatch.prune.1
---@field cacheSeconds? integer Time for which the provider caches a prompt after its last use, in seconds: five minutes at Anthropic, and at least as long at OpenAI. A pruning that breaks a younger cache has to save more than it costs.
---@field minimumSavings? integer The least tokens for which results are pruned.
---@field protectTokens? integer Tokens of the newest results that stay.
---@field protectedTools? string[] Tools whose results stay. Case, `_` and `-` in a name make no difference. `read` means every known tool that reads a file (`Read`, `read_file`, `view`, …), and `skill` every one that loads a skill (`Skill`, `load_skill`, …). A read of a file that a newer one repeats is pruned all the same.

---@class abridged.SettingsPatch.redaction.1
---@field enabled? boolean Switches it on.

---@class abridged.SettingsPatch.retry.1
---@field baseDelayMs? integer The first delay, in milliseconds.
---@field enabled? boolean Switches it on.
---@field maxDelayMs? integer The longest delay, in milliseconds.
---@field maxRetries? integer The most retries of a request.

---@class abridged.SettingsPatch.tokens.1
---@field estimator? abridged.EstimatorSetting The estimator.
---@field learnWindow? boolean Learns the window that a provider names in an error.

---@class abridged.SettingsPatch.tools.1
---@field files? abridged.FileTool[] Tools that touch files. They come before the built-in ones of common agents.
---@field skills? string[] Tools that load a skill, beside the built-in ones.
---@field todo? string[] Tools that hold the todo list. They come before the built-in ones.

---@class abridged.SettingsPatch A JSON merge patch of settings. Null removes a value.
---@field branchSummary? abridged.SettingsPatch.branchSummary.1 Summaries of branches that are left.
---@field compaction? abridged.SettingsPatch.compaction.1 Compaction of sessions.
---@field contextPromotion? abridged.SettingsPatch.contextPromotion.1 Promotion to a larger model instead of a compaction.
---@field defaultModel? string `"provider/id"` of the model for sessions without a model, and for summaries where the session's model cannot be asked.
---@field models? abridged.ModelSettingsInput[] The models.
---@field prune? abridged.SettingsPatch.prune.1 Pruning of old tool results.
---@field redaction? abridged.SettingsPatch.redaction.1 Redaction of secrets in summaries.
---@field retry? abridged.SettingsPatch.retry.1 Retries of transient errors.
---@field store? abridged.Secret The store of the sessions, in the place of the data folder: `postgres://user@host/database`. It counts when the daemon starts. The password may stand in it, in `PGPASSWORD`, or with `storePasswordCommand`.
---@field storePasswordCommand? string[] A command whose first line of output is the password of the store: the program, then its arguments. No shell reads it. It runs for each connection.
---@field tokens? abridged.SettingsPatch.tokens.1 Estimation of tokens.
---@field tools? abridged.SettingsPatch.tools.1 The tools of agents.
---@field trustedProjects? string[] Folders whose project settings are trusted.

---@class abridged.SettingsSetParams Params of `settings/set`.
---@field patch abridged.SettingsPatch JSON merge patch. Null removes a value, so that the value of the next layer applies.
---@field scope abridged.Scope Scope of the change.
---@field sessionId? abridged.SessionId Session that the scope refers to. With scope `global`: the session whose effective settings are returned.

--- Severity of a notice.
---@alias abridged.Severity "info"|"warning"|"error"

---@class abridged.ShortenedEntry An entry that a compaction cuts or summarizes before any model has read it.
---@field entryId abridged.EntryId The entry. `session/entry` returns it whole.
---@field tokensAfter integer Size of its message in the context, in tokens; 0 where it is summarized.
---@field tokensBefore integer Size of its message before, in tokens.

---@class abridged.ShownDraft A compaction before it is written.
---@field firstKeptEntryId? abridged.EntryId First entry that is kept verbatim; null where none is.
---@field lost? abridged.Lost Facts that the summary does not have; null for a conversation that is too large to be read again.
---@field method abridged.SummaryMethod Method of the summary.
---@field shortSummary? string Two sentences for a person; null where there are none.
---@field summary string The summary, whole.
---@field tokensAfter integer Size of the context after.
---@field tokensBefore integer Size of the context before.

--- The source of a value.
---@alias abridged.Source "default"|"global"|"project"|"environment"|"session"

---@class abridged.Sourced Settings with the source of each value.
---@field settings abridged.Settings The settings in force.
---@field sources table<string, abridged.Source> The source of each value that is not a default, by its dotted key.

--- The drafting of summaries ahead.
---@alias abridged.Speculative "auto"|boolean

---@class abridged.Spent Requests and tokens that models took for work beside the turns of a session: summaries, retries and rejected answers included.
---@field atLeast boolean Whether earlier requests may be missing, because the index is not ready.
---@field automatic abridged.SpentSum Those of automatic maintenance, which no client asked for.
---@field lastHour abridged.SpentInHour Automatic maintenance of the last hour.
---@field purposes table<string, abridged.SpentSum> Those by purpose, as `usage` entries name it.
---@field total abridged.SpentSum All requests.

---@class abridged.SpentInHour Automatic maintenance of the last hour.
---@field left? integer Tokens that are left; null: no limit.
---@field most? integer The most tokens, by `compaction.maxTokensPerHour`; null: no limit.
---@field tokens integer Tokens.

---@class abridged.SpentSum A sum of requests.
---@field cacheRead integer Input that a provider read from its cache, in tokens.
---@field cacheWrite integer Input that a provider wrote to its cache, in tokens.
---@field dollars? number Cost in dollars of the requests whose prices are known; null where none is.
---@field input integer Input that was not cached, in tokens.
---@field output integer Output, in tokens.
---@field requests integer Number of requests that reported a cost.
---@field totalTokens integer All tokens.
---@field unpriced integer Number of requests whose prices are not known.

--- Stage of a compaction.
---@alias abridged.Stage "pruning"|"hook"|"summarizing"|"checking"|"writing"

---@class abridged.Status Activity of a session.
---@field operationId? abridged.OperationId Id of the running operation.
---@field reason? string Reason of the running operation.
---@field type abridged.StatusKind Kind of activity.

---@class abridged.StatusAnswer Result of `session/status`.
---@field _meta any Number of disk operations: `{writes, fsyncs}`.
---@field hooks? abridged.HooksInForce Hooks that the client answers for this session. Absent where there is none.
---@field operations abridged.RunningOperation[] Operations that run.
---@field queue abridged.Queue Queued messages.
---@field session abridged.SessionInfo The session.
---@field spent abridged.Spent Tokens that models took for work beside the turns.
---@field summary? abridged.SummaryStatus The requests for the summary in force. Absent where no model was asked for it.
---@field waiting abridged.WaitingOperation[] Compactions that wait for the end of the turn. The session is not busy because of them.

--- Kinds of activity.
---@alias abridged.StatusKind "idle"|"running"|"compacting"|"retrying"|"handing_off"|"summarizing_branch"|"error"

--- The action at the threshold.
---@alias abridged.Strategy "context_full"|"handoff"|"off"

--- The layout of a compacted context.
---@alias abridged.Style "structured"|"recent_user_messages"

---@class abridged.SubscribeAnswer Result of `session/subscribe`.
---@field epoch string Id of this run of the daemon.
---@field replayed integer Number of events that are sent again, in order and with their old numbers.
---@field seq integer Number of the last event.
---@field snapshot? abridged.StatusAnswer State of the session; null where the events that follow are complete.
---@field status abridged.Subscription Whether every durable event after `after` is retained.

---@class abridged.SubscribeParams Params of `session/subscribe`.
---@field after? abridged.Seen Last event that the client has seen. Retained events after it are sent again.
---@field sessionId abridged.SessionId Id of the session.

--- Completeness of a subscription.
---@alias abridged.Subscription "ok"|"expired"

--- Author of a summary.
---@alias abridged.Summarizer abridged.ExtractiveWord|abridged.ModelRef

---@class abridged.SummaryDetails Lists of files of a summary. A hook may give any JSON value in their place, which is kept as it is.
---@field modifiedFiles? string[] Files that were changed.
---@field readFiles? string[] Files that were read and not changed.

--- The form of the requests to a model for a summary.
---@alias abridged.SummaryForm "live_request"|"transcript"

--- Method of a summary.
---@alias abridged.SummaryMethod "llm"|"remote"|"provider_native"|"extractive"|"hook"

---@class abridged.SummaryStatus The requests for the summary in force.
---@field entryId abridged.EntryId Compaction of the summary.
---@field form? abridged.SummaryForm Form of the requests; null where no model wrote the summary, and for a provider's own compaction.
---@field saved? abridged.Saved Savings by the provider's cache; null where nothing was read from it.

---@class abridged.SuppliedBranchSummary The summary of a branch that a hook supplies.
---@field details? any Any JSON. It is stored as it is and never read for files.
---@field summary string Summary of the branch that is left.

---@class abridged.SuppliedCompaction A compaction that a hook supplies.
---@field details? any Any JSON. It is stored as it is and never read for files.
---@field firstKeptEntryId? abridged.EntryId First entry that stays verbatim. Default: the one of the preparation.
---@field preserveData? abridged.AnyObject Data that is stored with the compaction. Later compactions carry it on; the key `abridged` is not available.
---@field shortSummary? string Two sentences for a person.
---@field summary string Summary of everything before the first kept entry.

---@class abridged.SystemMessage A change of system prompt and tools that pi stores among the messages.
---@field content? string|abridged.Block[] A text, or blocks.
---@field role "system" Role of the message.
---@field sections? table Texts of the system prompt by their names; null removes one.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.
---@field toolsAdded? any[] Tools that are added.
---@field toolsRemoved? any[] Names of tools that are removed.

---@class abridged.TextBlock A text.
---@field text string The text.
---@field textSignature? string Signature of its provider. The provider gets it back unchanged.
---@field type "text" Type of the block.

--- Kinds of things that a request names. A later version may add some.
---@alias abridged.ThingName "session"|"entry"|"compaction"|"pin"

---@class abridged.ThinkingBlock Thinking of a model. With a signature its provider gets it back unchanged, or not at all.
---@field redacted? boolean Whether the signature holds the thinking, which is hidden.
---@field thinking string The text; empty where the provider hides it.
---@field thinkingSignature? string Signature of its provider, or the hidden thinking.
---@field type "thinking" Type of the block.

--- How much a model thinks.
---@alias abridged.ThinkingLevel "off"|"minimal"|"low"|"medium"|"high"|"xhigh"|"max"

---@class abridged.ThinkingLevelChangeEntry The thinking level from here on.
---@field id abridged.EntryId Id of the entry.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field thinkingLevel? string The thinking level.
---@field timestamp string Time at which it was written.
---@field type "thinking_level_change" Type of the entry.

---@class abridged.Thresholds Sizes that the decision to compact compares.
---@field calibration? number Ratio of reported to estimated tokens; null before the first report.
---@field estimator string Estimator: `tiktoken`, or `chars` until its tables are loaded.
---@field fixedOverheadTokens integer Size of system prompt and tools, which a compaction cannot reduce.
---@field keepRecentTokens integer Size of the newest messages that are kept verbatim.
---@field summaryTokens integer Largest size of a summary.
---@field targetTokens integer Size below which a compaction brings the context.
---@field thresholdTokens integer Size above which the context is compacted.

---@class abridged.TitleChangeEntry The title of the session, in files of oh-my-pi.
---@field id abridged.EntryId Id of the entry.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field timestamp string Time at which it was written.
---@field title? string The title.
---@field type "title_change" Type of the entry.

---@class abridged.TokenSettings Estimation of tokens.
---@field estimator abridged.EstimatorSetting The estimator.
---@field learnWindow boolean Learns the window that a provider names in an error.

---@class abridged.TokenSettingsInput Estimation of tokens.
---@field estimator? abridged.EstimatorSetting The estimator.
---@field learnWindow? boolean Learns the window that a provider names in an error.

---@class abridged.ToolCallAnswer Result of `tool/call`.
---@field content abridged.PromptMessage Content blocks, or a text.
---@field isError? boolean Whether the tool failed.

---@class abridged.ToolCallBlock A call of a tool.
---@field arguments abridged.CallArguments Arguments of the call.
---@field id string Id of the call. The result names it.
---@field name string Name of the tool.
---@field thoughtSignature? string Signature of its provider. The provider gets it back unchanged.
---@field type "toolCall" Type of the block.

---@class abridged.ToolCallParams Params of `tool/call`.
---@field arguments abridged.CallArguments Arguments of the call.
---@field deadlineMs? integer Null: a tool may take any time. The request is cancelled with its turn.
---@field name string Name of the tool.
---@field sessionId abridged.SessionId Id of the session.
---@field toolCallId abridged.CallId Id of the call.
---@field turnId abridged.OperationId Id of the turn.

---@class abridged.ToolDefinition A tool in the form of this protocol.
---@field description string Description for the model.
---@field inputSchema? table JSON Schema of the arguments.
---@field name string Name of the tool.

---@class abridged.ToolResultMessage A tool result.
---@field content string|abridged.Block[] A text, or blocks.
---@field details? any Data of the tool for programs. It is not sent to a model.
---@field isError? boolean Whether the tool failed.
---@field role "toolResult" Role of the message.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.
---@field toolCallId string Id of the call that it answers.
---@field toolName? string Name of the tool.

---@class abridged.ToolSettings The tools of agents.
---@field files abridged.FileTool[] Tools that touch files. They come before the built-in ones of common agents.
---@field skills string[] Tools that load a skill, beside the built-in ones.
---@field todo string[] Tools that hold the todo list. They come before the built-in ones.

---@class abridged.ToolSettingsInput The tools of agents.
---@field files? abridged.FileTool[] Tools that touch files. They come before the built-in ones of common agents.
---@field skills? string[] Tools that load a skill, beside the built-in ones.
---@field todo? string[] Tools that hold the todo list. They come before the built-in ones.

---@class abridged.Tools
---@field description? string
---@field function? table
---@field functionDeclarations? table[]
---@field inputSchema? table JSON Schema of the arguments.
---@field input_schema? table JSON Schema of the arguments.
---@field name? string
---@field parameters? table JSON Schema of the arguments.

--- Tools: `{name, description, inputSchema}`, or the form of Anthropic (`input_schema`), of OpenAI (`parameters`, also below `function`) or of Google (`functionDeclarations`). A provider's own tools are refused: the client adds them to the request.
---@alias abridged.Tools abridged.Tools[]

---@class abridged.ToolsSetParams Params of `tools/set`.
---@field sessionId? abridged.SessionId Id of the session. Default: all sessions that begin later.
---@field tools abridged.Tools The tools. Each has a schema of its arguments.

---@class abridged.TreeAnswer Result of `session/tree`.
---@field leafEntryId? abridged.EntryId Leaf of the active path.
---@field nextCursor? abridged.EntryId Cursor of the next page; null on the last page.
---@field nodes abridged.TreeNode[] Entries in file order: a parent precedes its children.

---@class abridged.TreeNode An entry of the tree.
---@field active boolean Whether it is on the active path.
---@field customType? string Type of a `custom` entry or a `custom_message`; null for other entries.
---@field hidden boolean Whether it is in no context of any branch: a marker, a label, a change of a setting.
---@field id abridged.EntryId Id of the entry.
---@field label? string Label of the entry.
---@field parentId? abridged.EntryId Id of the parent; null for a root.
---@field preview string Content in one line; of an entry without text its type.
---@field role? string Role of a message; null for other entries.
---@field timestamp string Timestamp in the file's own form.
---@field tokens integer Size of the entry in a context, estimated by its characters.
---@field type string Type of the entry.
---@field undone boolean Whether it is a compaction or a reset that does not hold any more.

---@class abridged.TreeParams Params of `session/tree`.
---@field cursor? abridged.EntryId `nextCursor` of the page before.
---@field limit? integer Largest number of entries. Default: 1,000.
---@field sessionId abridged.SessionId Id of the session.

---@class abridged.UndoAnswer Result of `session/undo_compaction`.
---@field leafEntryId? abridged.EntryId Leaf after the undo.
---@field usage abridged.Usage Fullness of the context after the undo.

---@class abridged.Usage Fullness of a context.
---@field autoCompaction abridged.AutoCompaction Whether automatic compaction is on. `"resting"`: it is, and a compaction was undone, so it acts when the context is near its window.
---@field breakdown abridged.Breakdown Estimated share of each part of the context.
---@field canUndo boolean Whether `session/undo_compaction` has a compaction or a reset to undo.
---@field coldResume? abridged.ColdResume Costs of the next request where the prompt cache is cold by the age of the newest report and the context is over `compaction.coldResumeTokens`. Only in the answers of `session/usage`, `session/load` and `session/status`.
---@field contextTokens integer Size of the context.
---@field contextWindow? integer Size of the model's window.
---@field estimator string Estimator of the estimated part: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good.
---@field percent? number Size of the context in percent of the window; may exceed 100.
---@field reserveTokens integer Room that is reserved for the next answer.
---@field source abridged.UsageSource Source of `contextTokens`.
---@field thresholdTokens? integer Size above which the context is compacted.
---@field windowSource string Source of `contextWindow`: `setting`, `learned`, `catalog` or `default`.

---@class abridged.UsageAnswer Result of `session/usage`.
---@field autoCompaction abridged.AutoCompaction Whether automatic compaction is on. `"resting"`: it is, and a compaction was undone, so it acts when the context is near its window.
---@field breakdown abridged.Breakdown Estimated share of each part of the context.
---@field canUndo boolean Whether `session/undo_compaction` has a compaction or a reset to undo.
---@field code abridged.WhyCode The same reason for a program.
---@field coldResume? abridged.ColdResume Costs of the next request where the prompt cache is cold by the age of the newest report and the context is over `compaction.coldResumeTokens`. Only in the answers of `session/usage`, `session/load` and `session/status`.
---@field contextTokens integer Size of the context.
---@field contextWindow? integer Size of the model's window.
---@field estimator string Estimator of the estimated part: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good.
---@field percent? number Size of the context in percent of the window; may exceed 100.
---@field reserveTokens integer Room that is reserved for the next answer.
---@field source abridged.UsageSource Source of `contextTokens`.
---@field thresholdTokens? integer Size above which the context is compacted.
---@field thresholds abridged.Thresholds Sizes that the decision compares.
---@field why string Reason why the context is compacted now or not, for a person.
---@field windowSource string Source of `contextWindow`: `setting`, `learned`, `catalog` or `default`.

---@class abridged.UsageEntry Tokens of a model request beside the turns.
---@field id abridged.EntryId Id of the entry.
---@field kind? string The same for other programs.
---@field model? string Model that answered.
---@field operationId? string Operation that made the request.
---@field parentId? abridged.EntryId Entry that it follows; null for the first one.
---@field provider? string Provider that answered.
---@field purpose? string Purpose of the request, as in `llm/complete`.
---@field timestamp string Time at which it was written.
---@field trigger? string Reason of the operation that made the request.
---@field type "usage" Type of the entry.
---@field usage? abridged.ReportedUsage|table Tokens that the provider reports.

--- Source of a context's size.
---@alias abridged.UsageSource "provider"|"estimate"

---@class abridged.UserMessage A message of the user.
---@field content string|abridged.Block[] A text, or blocks.
---@field role "user" Role of the message.
---@field timestamp? number Time, in milliseconds since 1970. `session/append` adds it where it is missing.

---@class abridged.WaitingOperation An operation that was asked for and waits for its start.
---@field hasInstructions boolean Whether it has instructions for the summary.
---@field kind string Kind of the operation: `compaction`.
---@field operationId abridged.OperationId Id of the operation. `session/cancel` takes it.
---@field reason string Reason of the operation.
---@field since string Time of the request.
---@field when abridged.When Event for which it waits.

--- Time at which a compaction starts.
---@alias abridged.When "now"|"after_turn"

--- The reason why the context is compacted now or not. A later version may add some.
---@alias abridged.WhyCode "due"|"below"|"cold"|"off"|"undone"|"images"|"overhead"|"unattainable"|"too_short"|"calls_open"|"mid_turn"|"resting"|"no_progress"|"ahead"

--- Reasons why there is nothing to compact.
---@alias abridged.WhyNothing "already_compacted"|"too_short"|"would_not_shrink"|"below_half_threshold"|"superseded"

--- The evidence for a window.
---@alias abridged.WindowOrigin "refusal"|"saturation"

---@class abridged.Calls The requests by their methods.
---@field call fun(self: abridged.Client, method: "initialize", params?: abridged.InitializeParams, callback?: fun(failure: abridged.Error?, result: abridged.InitializeAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "initialize", params?: abridged.InitializeParams, options?: table): abridged.InitializeAnswer
---@field notify fun(self: abridged.Client, method: "initialized", params?: abridged.Nothing)
---@field call fun(self: abridged.Client, method: "shutdown", params?: abridged.Nothing, callback?: fun(failure: abridged.Error?, result: nil), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "shutdown", params?: abridged.Nothing, options?: table): nil
---@field notify fun(self: abridged.Client, method: "exit", params?: abridged.Nothing)
---@field call fun(self: abridged.Client, method: "ping", params?: abridged.Nothing, callback?: fun(failure: abridged.Error?, result: abridged.Empty), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "ping", params?: abridged.Nothing, options?: table): abridged.Empty
---@field call fun(self: abridged.Client, method: "rpc.discover", params?: abridged.Nothing, callback?: fun(failure: abridged.Error?, result: abridged.AnyJson), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "rpc.discover", params?: abridged.Nothing, options?: table): abridged.AnyJson
---@field call fun(self: abridged.Client, method: "session/new", params?: abridged.NewParams, callback?: fun(failure: abridged.Error?, result: abridged.SessionAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/new", params?: abridged.NewParams, options?: table): abridged.SessionAnswer
---@field call fun(self: abridged.Client, method: "session/load", params?: abridged.LoadParams, callback?: fun(failure: abridged.Error?, result: abridged.LoadAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/load", params?: abridged.LoadParams, options?: table): abridged.LoadAnswer
---@field call fun(self: abridged.Client, method: "session/import", params?: abridged.ImportParams, callback?: fun(failure: abridged.Error?, result: abridged.ImportAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/import", params?: abridged.ImportParams, options?: table): abridged.ImportAnswer
---@field call fun(self: abridged.Client, method: "session/list", params?: abridged.ListParams, callback?: fun(failure: abridged.Error?, result: abridged.ListAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/list", params?: abridged.ListParams, options?: table): abridged.ListAnswer
---@field call fun(self: abridged.Client, method: "session/close", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: nil), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/close", params?: abridged.SessionParams, options?: table): nil
---@field call fun(self: abridged.Client, method: "session/delete", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: nil), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/delete", params?: abridged.SessionParams, options?: table): nil
---@field call fun(self: abridged.Client, method: "session/status", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: abridged.StatusAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/status", params?: abridged.SessionParams, options?: table): abridged.StatusAnswer
---@field call fun(self: abridged.Client, method: "session/append", params?: abridged.AppendParams, callback?: fun(failure: abridged.Error?, result: abridged.AppendAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/append", params?: abridged.AppendParams, options?: table): abridged.AppendAnswer
---@field call fun(self: abridged.Client, method: "session/context", params?: abridged.ContextParams, callback?: fun(failure: abridged.Error?, result: abridged.ContextAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/context", params?: abridged.ContextParams, options?: table): abridged.ContextAnswer
---@field call fun(self: abridged.Client, method: "session/entries", params?: abridged.EntriesParams, callback?: fun(failure: abridged.Error?, result: abridged.EntriesAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/entries", params?: abridged.EntriesParams, options?: table): abridged.EntriesAnswer
---@field call fun(self: abridged.Client, method: "session/entry", params?: abridged.EntryParams, callback?: fun(failure: abridged.Error?, result: abridged.EntryAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/entry", params?: abridged.EntryParams, options?: table): abridged.EntryAnswer
---@field call fun(self: abridged.Client, method: "session/search", params?: abridged.SearchParams, callback?: fun(failure: abridged.Error?, result: abridged.SearchAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/search", params?: abridged.SearchParams, options?: table): abridged.SearchAnswer
---@field call fun(self: abridged.Client, method: "session/tree", params?: abridged.TreeParams, callback?: fun(failure: abridged.Error?, result: abridged.TreeAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/tree", params?: abridged.TreeParams, options?: table): abridged.TreeAnswer
---@field call fun(self: abridged.Client, method: "session/usage", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: abridged.UsageAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/usage", params?: abridged.SessionParams, options?: table): abridged.UsageAnswer
---@field call fun(self: abridged.Client, method: "session/run_idle", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: abridged.RunIdleAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/run_idle", params?: abridged.SessionParams, options?: table): abridged.RunIdleAnswer
---@field notify fun(self: abridged.Client, method: "session/activity", params?: abridged.SessionParams)
---@field call fun(self: abridged.Client, method: "session/cancel", params?: abridged.CancelParams, callback?: fun(failure: abridged.Error?, result: abridged.CancelAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/cancel", params?: abridged.CancelParams, options?: table): abridged.CancelAnswer
---@field call fun(self: abridged.Client, method: "session/compact", params?: abridged.CompactParams, callback?: fun(failure: abridged.Error?, result: abridged.CompactAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/compact", params?: abridged.CompactParams, options?: table): abridged.CompactAnswer
---@field call fun(self: abridged.Client, method: "context/fit", params?: abridged.FitParams, callback?: fun(failure: abridged.Error?, result: abridged.FitAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "context/fit", params?: abridged.FitParams, options?: table): abridged.FitAnswer
---@field call fun(self: abridged.Client, method: "session/undo_compaction", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: abridged.UndoAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/undo_compaction", params?: abridged.SessionParams, options?: table): abridged.UndoAnswer
---@field call fun(self: abridged.Client, method: "session/reset", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: abridged.ResetAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/reset", params?: abridged.SessionParams, options?: table): abridged.ResetAnswer
---@field call fun(self: abridged.Client, method: "session/prompt", params?: abridged.PromptParams, callback?: fun(failure: abridged.Error?, result: abridged.PromptAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/prompt", params?: abridged.PromptParams, options?: table): abridged.PromptAnswer
---@field call fun(self: abridged.Client, method: "session/continue", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: abridged.ContinueAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/continue", params?: abridged.SessionParams, options?: table): abridged.ContinueAnswer
---@field call fun(self: abridged.Client, method: "session/navigate", params?: abridged.NavigateParams, callback?: fun(failure: abridged.Error?, result: abridged.NavigateAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/navigate", params?: abridged.NavigateParams, options?: table): abridged.NavigateAnswer
---@field call fun(self: abridged.Client, method: "session/reference", params?: abridged.ReferenceParams, callback?: fun(failure: abridged.Error?, result: abridged.ReferenceAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/reference", params?: abridged.ReferenceParams, options?: table): abridged.ReferenceAnswer
---@field call fun(self: abridged.Client, method: "session/handoff", params?: abridged.HandoffParams, callback?: fun(failure: abridged.Error?, result: abridged.HandoffAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/handoff", params?: abridged.HandoffParams, options?: table): abridged.HandoffAnswer
---@field call fun(self: abridged.Client, method: "session/prune", params?: abridged.PruneParams, callback?: fun(failure: abridged.Error?, result: abridged.PruneAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/prune", params?: abridged.PruneParams, options?: table): abridged.PruneAnswer
---@field call fun(self: abridged.Client, method: "session/pin", params?: abridged.PinParams, callback?: fun(failure: abridged.Error?, result: abridged.EntryIdAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/pin", params?: abridged.PinParams, options?: table): abridged.EntryIdAnswer
---@field call fun(self: abridged.Client, method: "session/unpin", params?: abridged.PinParams, callback?: fun(failure: abridged.Error?, result: abridged.EntryIdAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/unpin", params?: abridged.PinParams, options?: table): abridged.EntryIdAnswer
---@field call fun(self: abridged.Client, method: "session/label", params?: abridged.LabelParams, callback?: fun(failure: abridged.Error?, result: abridged.EntryIdAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/label", params?: abridged.LabelParams, options?: table): abridged.EntryIdAnswer
---@field call fun(self: abridged.Client, method: "session/configure", params?: abridged.ConfigureParams, callback?: fun(failure: abridged.Error?, result: abridged.ConfigureAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/configure", params?: abridged.ConfigureParams, options?: table): abridged.ConfigureAnswer
---@field call fun(self: abridged.Client, method: "session/fork", params?: abridged.ForkParams, callback?: fun(failure: abridged.Error?, result: abridged.ForkAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/fork", params?: abridged.ForkParams, options?: table): abridged.ForkAnswer
---@field call fun(self: abridged.Client, method: "session/clear_queue", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: abridged.Queue), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/clear_queue", params?: abridged.SessionParams, options?: table): abridged.Queue
---@field call fun(self: abridged.Client, method: "session/export", params?: abridged.ExportParams, callback?: fun(failure: abridged.Error?, result: abridged.ExportAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/export", params?: abridged.ExportParams, options?: table): abridged.ExportAnswer
---@field call fun(self: abridged.Client, method: "session/subscribe", params?: abridged.SubscribeParams, callback?: fun(failure: abridged.Error?, result: abridged.SubscribeAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/subscribe", params?: abridged.SubscribeParams, options?: table): abridged.SubscribeAnswer
---@field call fun(self: abridged.Client, method: "session/unsubscribe", params?: abridged.SessionParams, callback?: fun(failure: abridged.Error?, result: nil), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "session/unsubscribe", params?: abridged.SessionParams, options?: table): nil
---@field call fun(self: abridged.Client, method: "models/list", params?: abridged.ModelsListParams, callback?: fun(failure: abridged.Error?, result: abridged.ModelsListAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "models/list", params?: abridged.ModelsListParams, options?: table): abridged.ModelsListAnswer
---@field call fun(self: abridged.Client, method: "models/forget", params?: abridged.ModelsForgetParams, callback?: fun(failure: abridged.Error?, result: abridged.ModelsForgetAnswer), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "models/forget", params?: abridged.ModelsForgetParams, options?: table): abridged.ModelsForgetAnswer
---@field call fun(self: abridged.Client, method: "settings/get", params?: abridged.SettingsGetParams, callback?: fun(failure: abridged.Error?, result: abridged.Sourced), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "settings/get", params?: abridged.SettingsGetParams, options?: table): abridged.Sourced
---@field call fun(self: abridged.Client, method: "settings/set", params?: abridged.SettingsSetParams, callback?: fun(failure: abridged.Error?, result: abridged.Sourced), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "settings/set", params?: abridged.SettingsSetParams, options?: table): abridged.Sourced
---@field call fun(self: abridged.Client, method: "hooks/set", params?: abridged.HooksSetParams, callback?: fun(failure: abridged.Error?, result: nil), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "hooks/set", params?: abridged.HooksSetParams, options?: table): nil
---@field call fun(self: abridged.Client, method: "tools/set", params?: abridged.ToolsSetParams, callback?: fun(failure: abridged.Error?, result: nil), options?: table): abridged.Call
---@field await fun(self: abridged.Client, method: "tools/set", params?: abridged.ToolsSetParams, options?: table): nil
---@field notify fun(self: abridged.Client, method: "$/cancelRequest", params?: abridged.CancelLspParams)
---@field notify fun(self: abridged.Client, method: "$/cancel_request", params?: abridged.CancelAcpParams)
