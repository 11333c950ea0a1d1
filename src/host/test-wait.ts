import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'

/** For tests: waits until the condition holds, looking often, and fails when it never does. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const endMs = performance.now() + withinMs
  while (performance.now() < endMs) {
    if (await holds()) return
    await pause(5)
  }
  assert.fail(`within ${withinMs} ms it did not become true that ${what}`)
}
