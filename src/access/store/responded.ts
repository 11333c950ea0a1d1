import type { Clock } from '../../core/clock.ts'

/** How long closing waits for a call that gets no response. */
const STORE_CLOSE_MS = 1000

/** Waits for a call of the store, but not for a store that does not respond. */
export async function responded(call: Promise<void> | undefined, clock: Clock): Promise<void> {
  if (call === undefined) return
  const { promise: late, resolve } = Promise.withResolvers<void>()
  using _timer = clock.setTimer(STORE_CLOSE_MS, resolve)
  await Promise.race([call, late])
}
