import { createBackoff } from '../../../core/backoff.ts'
import type { Clock, Timer } from '../../../core/clock.ts'
import type { Random } from '../../../core/random.ts'
import type { Execution } from '../../../execution/service.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'

export type KeptExecution = AsyncDisposable & {
  readonly address: Execution['address']
  /** Undefined while it waits to be started again. */
  current(): Execution | undefined
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

export type KeepDeps = {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  /** Starts it; on the port it had before, once it had one. */
  readonly start: (port: number | undefined) => Promise<Execution>
}

const RESTART = { firstMs: 1000, maxMs: 30_000 }
/** A service that lived so long was well: the delays begin anew. */
const WELL_MS = 120_000

/** Keeps the execution service running inside a process of many: when it ends by itself it is started again, later each time. */
export async function keepExecution({ log, clock, random, lifecycle, start }: KeepDeps): Promise<KeptExecution> {
  const backoff = createBackoff(RESTART, random)
  let current: Execution | undefined = await start(undefined)
  const { address } = current
  let timer: Timer | undefined
  let isClosing = false
  let startedMs = clock.monotonicMs()

  function watch(execution: Execution): void {
    void execution.ended.then(() => {
      if (isClosing) return
      current = undefined
      if (clock.monotonicMs() - startedMs > WELL_MS) backoff.reset()
      again('the event ring was silent for 30 s')
    })
  }

  function again(reason: string): void {
    const delayMs = Math.round(backoff.nextMs())
    lifecycle.degraded('execution', reason)
    log.warn({ delayMs, reason }, 'the execution service is started again')
    timer = clock.setTimer(delayMs, () => void restart())
  }

  async function restart(): Promise<void> {
    try {
      const started = await start(address.port)
      if (isClosing) return await started[Symbol.asyncDispose]()
      startedMs = clock.monotonicMs()
      current = started
      lifecycle.recovered('execution')
      watch(started)
    } catch (err) {
      log.error({ err }, 'the execution service could not be started')
      if (!isClosing) again('it could not be started')
    }
  }

  watch(current)
  return {
    address,
    current: () => current,
    beginLameDuck: () => current?.beginLameDuck(),
    async drain(deadlineMs) {
      isClosing = true
      timer?.cancel()
      await current?.drain(deadlineMs)
    },
    async [Symbol.asyncDispose]() {
      isClosing = true
      timer?.cancel()
      await current?.[Symbol.asyncDispose]()
    },
  }
}
