import type { Clock, Timer } from '../../core/clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import { settledWithin } from './clock.ts'

export type HealthState = 'starting' | 'ok' | 'degraded' | 'draining'
export type HealthReason = { part: string; reason: string; sinceMs: number }
export type Health = {
  state: HealthState
  /** What is degraded, oldest first. Empty unless degraded. */
  reasons: readonly HealthReason[]
  startedMs: number
}

export type Lifecycle = {
  health(): Health
  /** True between the start and the drain, while the process takes new work. */
  isReady(): boolean
  /** Everything is open: `starting` becomes `ok`. */
  started(): void
  /** A part works with a fault, for example ('disk', 'full'). The first report sets `sinceMs`. */
  degraded(part: string, reason: string): void
  /** The part works again. */
  recovered(part: string): void
  /** Runs when the drain begins, before the lame-duck time: the moment to ask clients to reconnect elsewhere. */
  onDraining(run: () => void): void
  /** Closed in reverse order of registration; each gets the time that is left. */
  defer(name: string, close: (deadlineMs: number) => void | Promise<void>): void
  /**
   * Services with clients, closed in their turn like one part but all at once, so that a slow client of one takes no time of the others. They get the
   * time that is left except what the parts after them need. Where the drain is given up, those that are open are closed with no time first.
   */
  deferClients(services: Readonly<Record<string, (deadlineMs: number) => Promise<void>>>): void
  use<Value extends Disposable | AsyncDisposable>(name: string, value: Value): Value
  /** Runs when the drain is given up before everything was closed, when no client is served any more: the last moment to save something. */
  onGivenUp(name: string, save: () => Promise<void>): void
  /** Starts the drain; a second call gives up waiting. */
  stop(reason: string): void
  /** Aborted once the drain begins. */
  readonly stopping: AbortSignal
  /** Resolves when everything is closed, or the drain was given up. */
  readonly stopped: Promise<{ clean: boolean; reason: string }>
}

export type LifecycleOptions = {
  /** Between readiness going and sockets closing, so that balancers look elsewhere first. */
  lameDuckMs?: number
  /** From the first signal to the end, whatever is still open. */
  deadlineMs?: number
}

/** Fault F11: 5 s of lame duck, stopped within 30 s. */
const DEFAULTS = { lameDuckMs: 5000, deadlineMs: 25_000 }
const REASONS_MAX = 64
/** Kept for the parts that are closed after the clients: as long as a shutdown waits for a store that does not respond. At most a quarter of what is left. */
const CLOSING_MS = 3000
/** How long the end waits for clients to be cut off after the drain was given up. A thread that does not reply in this time serves nobody either. */
const CUT_MS = 1000
/** How long it then waits for what is saved. */
const SAVE_MS = 2000

/** A lame-duck time that takes the whole drain would leave none to finish requests: then it is half of it. */
export function withTimeToClose(drain: Required<LifecycleOptions>): Required<LifecycleOptions> {
  const { lameDuckMs, deadlineMs } = drain
  return lameDuckMs < deadlineMs ? drain : { ...drain, lameDuckMs: deadlineMs / 2 }
}

type Closer = { readonly name: string; close(deadlineMs: number): void | Promise<void> }
/** Parts that are closed at the same time. */
type Group = { readonly open: Set<Closer>; readonly isClients: boolean }

export function createLifecycle(given: LifecycleOptions, deps: { clock: Clock; log: Logger }): Lifecycle {
  const { deadlineMs, lameDuckMs } = withTimeToClose({ ...DEFAULTS, ...given })
  const { clock, log } = deps
  const reasons = new Map<string, HealthReason>()
  const groups: Group[] = []
  const draining: (() => void)[] = []
  const saves: { readonly name: string; save(): Promise<void> }[] = []
  const stopping = new AbortController()
  const { promise: stopped, resolve: finish } = Promise.withResolvers<{ clean: boolean; reason: string }>()
  const startedMs = clock.nowMs()
  let phase: 'starting' | 'running' | 'draining' = 'starting'
  let hurry: (() => void) | undefined
  let isGivenUp = false

  function state(): HealthState {
    if (phase !== 'running') return phase
    return reasons.size === 0 ? 'ok' : 'degraded'
  }

  async function drain(reason: string): Promise<void> {
    const endMs = clock.monotonicMs() + deadlineMs
    let timer: Timer | undefined
    const given = new Promise<'given-up'>((resolve) => {
      hurry = () => {
        // From here on nothing more is closed.
        isGivenUp = true
        resolve('given-up')
      }
      timer = clock.setTimer(deadlineMs, hurry)
    })
    const closing = (async () => {
      if (lameDuckMs > 0)
        await Promise.race([given, new Promise<void>((resolve) => void clock.setTimer(lameDuckMs, resolve))])
      return closeAll(() => Math.max(0, endMs - clock.monotonicMs()))
    })()
    const outcome = await Promise.race([closing, given])
    timer?.cancel()
    if (outcome === 'given-up') {
      const open = openParts()
      await cutClients()
      await saveAll()
      log.warn({ reason, open }, 'stopped before everything was closed')
    } else if (outcome === 'failed') log.error({ reason }, 'stopped with errors: see the lines before this one')
    else log.info({ reason }, 'stopped')
    finish({ clean: outcome === 'closed', reason })
  }

  const openParts = () => groups.flatMap(({ open }) => [...open].map(({ name }) => name))

  /** What is charged after the save would be lost, so nobody is served from here on. */
  async function cutClients(): Promise<void> {
    const open = groups.filter(({ isClients }) => isClients).flatMap((group) => [...group.open])
    const cutting = Promise.all(open.map((part) => closeOne(part, 0)))
    await settledWithin(cutting, CUT_MS, clock)
  }

  async function saveAll(): Promise<void> {
    const saveOne = ({ name, save }: (typeof saves)[number]) =>
      save().catch((error: unknown) => log.error({ err: error, service: name }, 'saving failed'))
    // Started after the timer, so that the time a save blocks the event loop counts too.
    const saving = Promise.resolve().then(() => Promise.all(saves.map(saveOne)))
    await settledWithin(saving, SAVE_MS, clock)
  }

  async function closeAll(leftMs: () => number): Promise<'closed' | 'failed'> {
    let outcome: 'closed' | 'failed' = 'closed'
    for (let group = groups.at(-1); group && !isGivenUp; group = groups.at(-1)) {
      const { open, isClients } = group
      const ms = isClients ? leftMs() - Math.min(CLOSING_MS, leftMs() / 4) : leftMs()
      const closed = await Promise.all(
        [...open].map(async (part) => {
          const isClosed = await closeOne(part, ms)
          open.delete(part)
          return isClosed
        }),
      )
      if (closed.includes(false)) outcome = 'failed'
      groups.splice(groups.indexOf(group), 1)
    }
    return outcome
  }

  async function closeOne(part: Closer, deadlineMs: number): Promise<boolean> {
    try {
      await part.close(deadlineMs)
      return true
    } catch (error) {
      log.error({ err: error, service: part.name }, 'closing failed')
      return false
    }
  }

  const addPart = (part: Closer) => void groups.push({ open: new Set([part]), isClients: false })

  return {
    health: () => ({ state: state(), reasons: phase === 'running' ? [...reasons.values()] : [], startedMs }),
    isReady: () => phase === 'running',
    started() {
      if (phase === 'starting') phase = 'running'
    },
    degraded(part, reason) {
      const known = reasons.get(part)
      if (known?.reason === reason || (!known && reasons.size >= REASONS_MAX)) return
      reasons.set(part, { part, reason, sinceMs: known?.sinceMs ?? clock.nowMs() })
      log.warn({ part, reason }, 'degraded')
    },
    recovered(part) {
      if (reasons.delete(part)) log.info({ part }, 'recovered')
    },
    onDraining: (run) => void draining.push(run),
    defer: (name, close) => addPart({ name, close }),
    deferClients(services) {
      const parts = Object.entries(services).map(([name, close]) => ({ name, close }))
      groups.push({ open: new Set(parts), isClients: true })
    },
    use(name, value) {
      const close = Symbol.asyncDispose in value ? () => value[Symbol.asyncDispose]() : () => value[Symbol.dispose]()
      addPart({ name, close: async () => close() })
      return value
    },
    onGivenUp: (name, save) => void saves.push({ name, save }),
    stop(reason) {
      if (phase === 'draining') {
        log.warn({ reason }, 'second request to stop; stopping now')
        hurry?.()
        return
      }
      phase = 'draining'
      log.info({ reason, lameDuckMs }, 'draining')
      stopping.abort()
      for (const run of draining) {
        try {
          run()
        } catch (error) {
          log.error({ err: error }, 'drain hook failed')
        }
      }
      void drain(reason)
    },
    stopping: stopping.signal,
    stopped,
  }
}
