import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'

/** For tests: polls until the condition holds; fails after the limit, which is long enough for a slow and busy machine. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
  const endMs = performance.now() + withinMs
  for (;;) {
    // The condition is checked once more after the limit, for a machine that was too busy to poll.
    const fromMs = performance.now()
    const isLast = fromMs >= endMs
    if (await holds()) return
    if (isLast) assert.fail(`within ${withinMs} ms it did not become true that ${what}`)
    // A check that takes long, such as a scrape or a command, leaves half of the time to what it waits for.
    await pause(Math.min(Math.max(5, performance.now() - fromMs), 100))
  }
}
