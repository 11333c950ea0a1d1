import { Calendar } from '../../access/quota/calendar.ts'
import type { BillingOutcome } from '../../access/store/billing/store.ts'
import type { BillingEvent } from '../../access/store/billing/tables.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { createBackoff } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { type DueTime, dueOf } from './due.ts'
import { createLanes, type Lane } from './lanes.ts'
import { createEventPlanner, type PlanOptions, type PlanTime } from './plan-events.ts'
import { sendLanes } from './send-lanes.ts'
import { createSendLease } from './send-lease.ts'
import type { BillingSink } from './sink.ts'

/** Between two passes when nothing waits. */
const IDLE_MS = 10_000
/** Between two passes while there is work: the store and the event loop are free for others. */
const BUSY_MS = 50
const BACKOFF = { firstMs: 1000, maxMs: 300_000 }
/** Groups of parallel requests in one pass. */
const GROUPS_PER_PASS = 8
/** After this time a lane begins no further request. With the last one it is far within the lease. */
const LANE_MS = 20_000
/** Events from which a group is chosen where the sink has lanes, times those that it needs at least. */
const WINDOW_GROUPS = 8
/** Events from which it is chosen where those of the window have few lanes, or wait for the clock. What is behind them waits. */
const WINDOW_MAX = 2048

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

/** When a group was chosen. */
type GroupTime = DueTime & {
  /** Whether no further request of it is to begin. */
  isOver(): boolean
}

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
  const limits = { ...sink, name }
  const planner = createEventPlanner(options, { store, onStep })
  const lanes = createLanes(sink)
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

  /** The time of a group from now on. A machine that was suspended meanwhile has only its wall clock to show it. */
  function groupTime(): GroupTime {
    const [wallMs, monotonicMs] = [clock.nowMs(), clock.monotonicMs()]
    const elapsedMs = () => Math.max(clock.nowMs() - wallMs, clock.monotonicMs() - monotonicMs)
    return { calendarMs: calendarMs(), wallMs, isOver: () => elapsedMs() >= LANE_MS }
  }

  /** Makes dead letters of what the sink would not recognize as a repetition, or not accept; returns what is to be sent. */
  async function makeDeadLetters(waiting: readonly BillingEvent[], time: DueTime): Promise<BillingEvent[]> {
    const outcomes: BillingOutcome[] = []
    const ready: BillingEvent[] = []
    for (const event of waiting) {
      const due = dueOf(event, time, limits)
      if (due === 'send') ready.push(event)
      else if (due !== 'hold')
        outcomes.push({ eventKey: event.eventKey, state: 'dead', doubtSince: event.doubtSince, reason: due.reason })
    }
    if (outcomes.length > 0) await settle(outcomes)
    return ready
  }

  /** Chooses a group from the oldest events, and from more of them where few of those are of lanes that work. */
  async function chooseGroup(time: DueTime): Promise<Lane[]> {
    const take = sink.batchMax * sink.parallel
    const firstMax = sink.laneOf === undefined ? take : take * WINDOW_GROUPS
    let waiting = await billing.waiting(name, firstMax)
    let ready = await makeDeadLetters(waiting, time)
    if (waiting.length === firstMax && !lanes.areEnough(ready)) {
      waiting = await billing.waiting(name, Math.max(firstMax, WINDOW_MAX))
      ready = await makeDeadLetters(waiting, time)
    }
    return lanes.choose(ready)
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

  /** Returns whether the sink works. */
  async function sendGroup(group: readonly Lane[], time: GroupTime): Promise<boolean> {
    const first = group.flatMap(({ batches }) => batches.flat()).filter(({ doubtSince }) => doubtSince === null)
    if (first.length > 0)
      await billing.put(
        name,
        owner,
        first.map(({ eventKey }) => ({ eventKey, state: 'pending', doubtSince: time.calendarMs, reason: null })),
      )
    onStep('attempt-recorded')
    const { outcomes, isAccepting, failed } = await sendLanes(group, lanes, { sink, isOver: time.isOver })
    onStep('sent')
    if (outcomes.length > 0) await settle(outcomes)
    if (isAccepting) backoff.reset()
    if (failed !== undefined) {
      fail(failed.reason, failed.retryAfterMs)
      return false
    }
    if (isAccepting && failing !== undefined) {
      log.info('the billing system accepts events again')
      failing = undefined
    }
    return true
  }

  function fail(reason: string, retryAfterMs = 0): void {
    counts.failures += 1
    const delayMs = Math.max(backoff.nextMs(), retryAfterMs)
    notBeforeMs = clock.monotonicMs() + delayMs
    if (failing === undefined) log.warn({ reason }, 'the billing system does not accept events; they wait')
    failing = reason
  }

  /** Returns whether more can be sent at once. */
  async function sendSome(): Promise<boolean> {
    for (let groups = 0; groups < GROUPS_PER_PASS; groups++) {
      const state = await lease.take()
      if (state === undefined || state.paused) return false
      const time = groupTime()
      const group = await chooseGroup(time)
      if (group.length === 0 || !(await sendGroup(group, time))) return false
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
