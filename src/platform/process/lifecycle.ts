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
  use<Value extends Disposable | AsyncDisposable>(name: string, value: Value): Value
  /** Runs when the drain is given up before everything was closed: the last moment to save something. */
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
/** How long the end waits for what is saved after the drain was given up. */
const SAVE_MS = 2000

type Closer = { name: string; close(deadlineMs: number): void | Promise<void> }

export function createLifecycle(given: LifecycleOptions, deps: { clock: Clock; log: Logger }): Lifecycle {
  const options = { ...DEFAULTS, ...given }
  const { clock, log } = deps
  const reasons = new Map<string, HealthReason>()
  const closers: Closer[] = []
  const draining: (() => void)[] = []
  const saves: { readonly name: string; save(): Promise<void> }[] = []
  const stopping = new AbortController()
  const { promise: stopped, resolve: finish } = Promise.withResolvers<{ clean: boolean; reason: string }>()
  const startedMs = clock.nowMs()
  let phase: 'starting' | 'running' | 'draining' = 'starting'
  let hurry: (() => void) | undefined

  function state(): HealthState {
    if (phase !== 'running') return phase
    return reasons.size === 0 ? 'ok' : 'degraded'
  }

  async function drain(reason: string): Promise<void> {
    const endMs = clock.monotonicMs() + options.deadlineMs
    let timer: Timer | undefined
    const given = new Promise<'given-up'>((resolve) => {
      hurry = () => resolve('given-up')
      timer = clock.setTimer(options.deadlineMs, () => resolve('given-up'))
    })
    const closing = (async () => {
      const lameDuckMs = Math.min(options.lameDuckMs, options.deadlineMs)
      if (lameDuckMs > 0)
        await Promise.race([given, new Promise<void>((resolve) => void clock.setTimer(lameDuckMs, resolve))])
      return closeAll(() => Math.max(0, endMs - clock.monotonicMs()))
    })()
    const outcome = await Promise.race([closing, given])
    timer?.cancel()
    if (outcome === 'given-up') {
      await saveAll()
      log.warn({ reason, open: closers.map(({ name }) => name) }, 'stopped before everything was closed')
    } else if (outcome === 'failed') log.error({ reason }, 'stopped with errors: see the lines before this one')
    else log.info({ reason }, 'stopped')
    finish({ clean: outcome === 'closed', reason })
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
    for (let next = closers.at(-1); next; next = closers.at(-1)) {
      try {
        await next.close(leftMs())
      } catch (error) {
        outcome = 'failed'
        log.error({ err: error, service: next.name }, 'closing failed')
      }
      closers.splice(closers.indexOf(next), 1)
    }
    return outcome
  }

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
    defer: (name, close) => void closers.push({ name, close }),
    use(name, value) {
      const close = Symbol.asyncDispose in value ? () => value[Symbol.asyncDispose]() : () => value[Symbol.dispose]()
      closers.push({ name, close: async () => close() })
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
      log.info({ reason, lameDuckMs: options.lameDuckMs }, 'draining')
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
