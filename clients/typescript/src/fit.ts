import { type CallOptions, type Client, connect } from "./client.js";
import { DaemonExited } from "./errors.js";
import type { FitAnswer, FitParams } from "./protocol.js";

let shared: Promise<Client> | undefined;

/**
 * Fits messages into a window. All calls of this process share one daemon, which starts with the first call and keeps
 * Node running only while a call is open. A call whose daemon ends is made once more, by a new one.
 */
export async function fit(params: FitParams, options?: CallOptions): Promise<FitAnswer> {
  try {
    return await (await sharedClient()).fit(params, options);
  } catch (error) {
    if (!(error instanceof DaemonExited)) throw error;
    return (await sharedClient()).fit(params, options);
  }
}

function sharedClient(): Promise<Client> {
  if (shared) return shared;
  const starting = connect({ restart: false, keepAlive: false });
  const forget = () => {
    if (shared === starting) shared = undefined;
  };
  starting.then((client) => client.on("exit", forget), forget);
  return (shared = starting);
}
