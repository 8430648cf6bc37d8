/** Fails the test where a condition does not hold. */
export function check(holds, what) {
  if (!holds) throw new Error(`typescript: ${what}`);
}

/** The error of a promise that must fail. */
export async function refusal(promise) {
  const missing = Symbol("no error");
  const error = await promise.then(
    () => missing,
    (error) => error,
  );
  check(error !== missing, "a call that must fail succeeds");
  return error;
}

/** Whether a process runs. */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
