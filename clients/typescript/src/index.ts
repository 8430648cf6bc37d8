export { Client, connect } from "./client.js";
export type { CallInput, CallOptions, Callback, ClientEvents, ConnectOptions } from "./client.js";
export { AbridgedError, BinaryNotFound, DaemonExited } from "./errors.js";
export type { ClientErrorCode } from "./errors.js";
export { findBinary } from "./find.js";
export { fit } from "./fit.js";
export type * from "./protocol.js";
export type { ReconnectedSession } from "./sessions.js";
