import type { Clock } from '../core/clock.ts'
import { QueryError } from './query-error.ts'

/**
 * Whose query it was that only the end of the database process could stop. A query that ran too long is known; memory is used by all that run, so
 * these become suspects: until one has run a query without harm, suspects run one after another, and the next time only one of them can have
 * been it. Who is found out is refused for a while, longer each time, so that one customer cannot take the database from all others.
 */
export type QueryBlame = {
  /** Throws QueryError when this subscription may not query now. */
  check(subscriptionId: string): void
  started(subscriptionId: string): void
  /** A query ended; `isHarmless` when it did so by itself. */
  ended(subscriptionId: string, isHarmless: boolean): void
  /** Its query had to be ended by force. */
  blame(subscriptionId: string): void
  /** One of those that run used up the memory. Gives the one that did, where it can be known. */
  blameRunning(): string | undefined
}

const BAN_MS = 30_000
const BAN_MS_MAX = 30 * 60_000
/** Without a further kill for so long, the next ban is a first one. */
const FORGET_MS = 60 * 60_000
const SUSPECT_MS = 10 * 60_000
const RETRY_SECONDS = 1

export function createQueryBlame(clock: Clock): QueryBlame {
  const running = new Map<string, number>()
  const suspectUntilMs = new Map<string, number>()
  const bans = new Map<string, { untilMs: number; lengthMs: number }>()

  function isSuspect(subscriptionId: string): boolean {
    const untilMs = suspectUntilMs.get(subscriptionId)
    if (untilMs !== undefined && untilMs <= clock.monotonicMs()) suspectUntilMs.delete(subscriptionId)
    return suspectUntilMs.has(subscriptionId)
  }

  function blame(subscriptionId: string): void {
    const nowMs = clock.monotonicMs()
    const before = bans.get(subscriptionId)
    const isAgain = before !== undefined && nowMs - before.untilMs < FORGET_MS
    const lengthMs = isAgain ? Math.min(before.lengthMs * 4, BAN_MS_MAX) : BAN_MS
    bans.set(subscriptionId, { untilMs: nowMs + lengthMs, lengthMs })
    suspectUntilMs.delete(subscriptionId)
  }

  return {
    check(subscriptionId) {
      const ban = bans.get(subscriptionId)
      const leftMs = (ban?.untilMs ?? 0) - clock.monotonicMs()
      if (leftMs > 0) {
        const seconds = Math.ceil(leftMs / 1000)
        throw new QueryError(
          'TOO_MANY_SIMULTANEOUS_QUERIES',
          `A query of this subscription had to be ended by force. Its queries are taken again in ${seconds} seconds.`,
          seconds,
        )
      }
      if (isSuspect(subscriptionId) && [...running.keys()].some(isSuspect))
        throw new QueryError(
          'TOO_MANY_SIMULTANEOUS_QUERIES',
          'A query used up the memory of the database a moment ago. Until it is known whose, queries that ran then run one at a time.',
          RETRY_SECONDS,
        )
    },
    started: (subscriptionId) => void running.set(subscriptionId, (running.get(subscriptionId) ?? 0) + 1),
    ended(subscriptionId, isHarmless) {
      const left = (running.get(subscriptionId) ?? 1) - 1
      if (left === 0) running.delete(subscriptionId)
      else running.set(subscriptionId, left)
      if (isHarmless) suspectUntilMs.delete(subscriptionId)
    },
    blame,
    blameRunning() {
      const suspects = [...running.keys()].filter(isSuspect)
      const among = suspects.length > 0 ? suspects : [...running.keys()]
      const [only] = among
      if (among.length === 1 && only !== undefined) {
        blame(only)
        return only
      }
      for (const one of among) suspectUntilMs.set(one, clock.monotonicMs() + SUSPECT_MS)
      return undefined
    },
  }
}
