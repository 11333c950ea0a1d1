import { Calendar } from '../../access/quota/calendar.ts'
import type { BillingOutcome } from '../../access/store/billing/store.ts'
import type { BillingEvent } from '../../access/store/billing/tables.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { createBackoff } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { createEventPlanner, type PlanOptions, type PlanTime } from './plan-events.ts'
import { createSendLease } from './send-lease.ts'
import type { BatchResult, BillingSink, EventResult } from './sink.ts'

/** Between two passes when nothing waits. */
const IDLE_MS = 10_000
/** Between two passes while there is work: the store and the event loop are free for others. */
const BUSY_MS = 50
const BACKOFF = { firstMs: 1000, maxMs: 300_000 }
/** Groups of parallel requests in one pass. */
const GROUPS_PER_PASS = 8

export type PusherCounts = { sent: number; dead: number; failures: number }

export type Pusher = {
  /** Makes and sends some events. Returns after how many milliseconds it is to be called again. */
  pass(): Promise<number>
  readonly counts: Readonly<PusherCounts>
  unmapped(): readonly string[]
  /** The last failure of the sink, until it works again. */
  failing(): string | undefined
  /** When the billing system last accepted events, unix ms; undefined if not since the start. */
  lastSuccessMs(): number | undefined
}

/** What is known of the events of a batch after an attempt. */
type Attempt = {
  readonly results: readonly (EventResult | undefined)[]
  readonly failed?: Extract<BatchResult, { kind: 'failed' }>
}

const AGAIN: EventResult = { kind: 'again' }

export type PusherDeps = {
  readonly store: AccessStore
  readonly sink: BillingSink
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Distinguishes this process. */
  readonly owner: string
  /** The newest hour of usage as the process starts: it shows whether the clock is right. */
  readonly recordedMs?: number | undefined
  /** Called between any two steps, for tests that end the process there. */
  readonly onStep?: (step: string) => void
}

/**
 * Sends the usage of a store to its billing system. An event is in the store before it is sent, with the time of its first attempt, and is marked after the
 * response: a process that ends anywhere between leaves an event that is repeated with the same id.
 */
export function createPusher(options: PlanOptions, deps: PusherDeps): Pusher {
  const { store, sink, clock, log, owner, onStep = () => {} } = deps
  const { billing } = store
  const name = options.sink
  const planner = createEventPlanner(options, { store, onStep })
  const lease = createSendLease({ sink: name, owner }, { billing, clock })
  const calendar = new Calendar(clock, { recordedMs: deps.recordedMs })
  const backoff = createBackoff(BACKOFF, deps.random)
  const counts: PusherCounts = { sent: 0, dead: 0, failures: 0 }
  let notBeforeMs = 0
  let failing: string | undefined
  let lastSuccessMs: number | undefined

  /**
   * Unix ms without jumps of the wall clock forward, which would close hours too early and make usage too old. A clock that was ahead at the start and is corrected
   * counts at once: to close later and to keep longer are the safe sides.
   */
  function readTime(): PlanTime {
    const monotonicMs = clock.monotonicMs()
    const nowMs = Math.min(calendarMs(), Math.floor(clock.nowMs()))
    return { nowMs, isCertain: calendar.isSettled(monotonicMs) }
  }

  /** Unix ms without any jump of the wall clock: how long an event has been in doubt. */
  function calendarMs(): number {
    const monotonicMs = clock.monotonicMs()
    calendar.update(monotonicMs)
    return Math.floor(calendar.wallMs(monotonicMs))
  }

  /** Makes dead letters of what the sink would not recognize as a repetition, or not accept; returns the others. */
  async function makeDeadLetters(waiting: readonly BillingEvent[], nowMs: number): Promise<BillingEvent[]> {
    const { repeatWithinMs = Number.POSITIVE_INFINITY, ageMaxMs = Number.POSITIVE_INFINITY } = sink
    const tooOldMs = readTime().nowMs - ageMaxMs
    const outcomes: BillingOutcome[] = []
    const ready: BillingEvent[] = []
    for (const event of waiting) {
      const { eventKey, doubtSince } = event
      const reason =
        doubtSince !== null && nowMs - doubtSince > repeatWithinMs
          ? `outcome unknown: an attempt at ${new Date(doubtSince).toISOString()} got no response, and ${name} may count a repetition`
          : event.hour < tooOldMs
            ? `too old: ${name} does not accept usage of ${new Date(event.hour).toISOString()}`
            : undefined
      if (reason === undefined) ready.push(event)
      else outcomes.push({ eventKey, state: 'dead', doubtSince, reason })
    }
    if (outcomes.length > 0) await settle(outcomes)
    return ready
  }

  async function settle(outcomes: readonly BillingOutcome[]): Promise<void> {
    await billing.put(name, owner, outcomes)
    onStep('recorded')
    const dead = outcomes.filter(({ state }) => state === 'dead')
    const sent = outcomes.filter(({ state }) => state === 'sent').length
    if (sent > 0) lastSuccessMs = Math.floor(clock.nowMs())
    counts.sent += sent
    counts.dead += dead.length
    if (dead.length > 0)
      log.error({ events: dead.length, reason: dead[0]?.reason }, 'events for the billing system are dead letters')
  }

  /** Sends events as one batch, or in halves where the sink refuses it without naming the event. */
  async function sendBatch(batch: readonly BillingEvent[]): Promise<Attempt> {
    const result = await sink.send(batch)
    if (result.kind === 'settled') return { results: result.results }
    if (result.kind === 'failed')
      return { results: batch.map(() => (result.isCounted === false ? AGAIN : undefined)), failed: result }
    if (batch.length === 1) return { results: [{ kind: 'refused', reason: result.reason }] }
    const middle = Math.ceil(batch.length / 2)
    const [left, right] = [batch.slice(0, middle), batch.slice(middle)]
    const first = await sendBatch(left)
    const second = first.failed === undefined ? await sendBatch(right) : { results: right.map(() => AGAIN) }
    const { failed = second.failed } = first
    return { results: [...first.results, ...second.results], ...(failed === undefined ? {} : { failed }) }
  }

  /** Sends batches one after another, up to the first failure. */
  async function sendLane(lane: readonly (readonly BillingEvent[])[]): Promise<Attempt[]> {
    const attempts: Attempt[] = []
    let hasFailed = false
    for (const batch of lane) {
      const attempt: Attempt = hasFailed ? { results: batch.map(() => AGAIN) } : await sendBatch(batch)
      attempts.push(attempt)
      hasFailed ||= attempt.failed !== undefined
    }
    return attempts
  }

  /** Returns whether the sink works. */
  async function sendGroup(group: readonly (readonly BillingEvent[])[], nowMs: number): Promise<boolean> {
    const first = group.flat().filter(({ doubtSince }) => doubtSince === null)
    if (first.length > 0)
      await billing.put(
        name,
        owner,
        first.map(({ eventKey }) => ({ eventKey, state: 'pending', doubtSince: nowMs, reason: null })),
      )
    onStep('attempt-recorded')
    const lanes = inLanes(group, sink)
    const results = (await Promise.all(lanes.map(sendLane))).flat()
    onStep('sent')
    const sent = lanes.flat()
    const outcomes = results.flatMap((result, at) => outcomesOf(sent[at] ?? [], result, sink))
    if (outcomes.length > 0) await settle(outcomes)
    const failed = results.find((result) => result.failed !== undefined)?.failed
    if (failed === undefined) return true
    fail(failed.reason, failed.retryAfterMs)
    return false
  }

  function fail(reason: string, retryAfterMs = 0): void {
    counts.failures += 1
    const delayMs = Math.max(backoff.nextMs(), retryAfterMs)
    notBeforeMs = clock.monotonicMs() + delayMs
    if (failing === undefined) log.warn({ reason }, 'the billing system does not accept events; they wait')
    failing = reason
  }

  async function sendSome(): Promise<boolean> {
    const take = sink.batchMax * sink.parallel
    for (let groups = 0; groups < GROUPS_PER_PASS; groups++) {
      const nowMs = calendarMs()
      const waiting = await billing.waiting(name, take)
      const ready = await makeDeadLetters(waiting, nowMs)
      if (ready.length > 0 && !(await sendGroup(inBatches(ready, sink.batchMax), nowMs))) return false
      if (ready.length > 0) {
        if (failing !== undefined) log.info('the billing system accepts events again')
        failing = undefined
        backoff.reset()
      }
      if (waiting.length < take) return false
    }
    return true
  }

  return {
    async pass() {
      const state = await lease.take()
      onStep('leased')
      if (state === undefined || state.paused) return IDLE_MS
      const hasMoreToPlan = await planner.run(state, readTime())
      const waitMs = notBeforeMs - clock.monotonicMs()
      const hasMoreToSend = waitMs > 0 ? false : await sendSome()
      if (hasMoreToPlan || hasMoreToSend) return BUSY_MS
      return Math.min(IDLE_MS, Math.max(BUSY_MS, failing === undefined ? IDLE_MS : notBeforeMs - clock.monotonicMs()))
    },
    counts,
    unmapped: planner.unmapped,
    failing: () => failing,
    lastSuccessMs: () => lastSuccessMs,
  }
}

/**
 * Events without a result keep what was recorded before the attempt: nobody knows whether they were counted. One that is refused after an attempt in doubt
 * stays in doubt where the sink forgets ids: a retry by the operator may come later than that.
 */
function outcomesOf(
  batch: readonly BillingEvent[],
  { results }: Attempt,
  { repeatWithinMs }: Pick<BillingSink, 'repeatWithinMs'>,
): BillingOutcome[] {
  return batch.flatMap(({ eventKey, doubtSince }, at): BillingOutcome[] => {
    const result = results[at]
    if (result?.kind === 'sent') return [{ eventKey, state: 'sent', doubtSince: null, reason: null }]
    if (result?.kind === 'refused')
      return [
        {
          eventKey,
          state: 'dead',
          doubtSince: repeatWithinMs === undefined ? null : doubtSince,
          reason: result.reason,
        },
      ]
    // As before the attempt.
    return result?.kind === 'again' ? [{ eventKey, state: 'pending', doubtSince, reason: null }] : []
  })
}

/** The batches that may be sent at the same time, each with those that have to wait for it. */
function inLanes(group: readonly (readonly BillingEvent[])[], { laneOf }: Pick<BillingSink, 'laneOf'>) {
  const lanes = new Map<string, (readonly BillingEvent[])[]>()
  for (const [at, batch] of group.entries()) {
    const [event] = batch
    const lane = laneOf === undefined || event === undefined ? String(at) : laneOf(event)
    const others = lanes.get(lane)
    if (others === undefined) lanes.set(lane, [batch])
    else others.push(batch)
  }
  return [...lanes.values()]
}

function inBatches(events: readonly BillingEvent[], size: number): BillingEvent[][] {
  const batches: BillingEvent[][] = []
  for (let at = 0; at < events.length; at += size) batches.push(events.slice(at, at + size))
  return batches
}
