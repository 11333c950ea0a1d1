import type { Clock } from '../../core/clock.ts'
import { delay } from '../../platform/process/clock.ts'
import { type Awaitable, mapAwaitable } from './awaitable.ts'

/** The fault that the check finds, undefined for none: what it finds the first time counts only if a second check a slot later finds one too. */
export type SecondCheck = <Fault>(
  check: (isSecond: boolean) => Awaitable<Fault | undefined>,
) => Awaitable<Fault | undefined>

/** For state that a node reports: one that is a little behind has the state before. Beyond `waitingMax` at once the first check counts. */
export function createSecondCheck({
  clock,
  slotMs,
  waitingMax,
}: {
  readonly clock: Clock
  readonly slotMs: () => number
  readonly waitingMax: number
}): SecondCheck {
  let waiting = 0

  async function checkLater<Fault>(
    check: (isSecond: boolean) => Awaitable<Fault | undefined>,
  ): Promise<Fault | undefined> {
    waiting += 1
    await delay(clock, slotMs())
    waiting -= 1
    return check(true)
  }

  return (check) =>
    mapAwaitable(check(false), (fault) => (fault === undefined || waiting >= waitingMax ? fault : checkLater(check)))
}
