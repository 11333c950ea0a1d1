import assert from 'node:assert/strict'
import type { Execution } from '../../../execution/service.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import { type InstanceEvents, openSupervised, supervise } from '../../../platform/process/supervise.ts'

export type SupervisedExecution = AsyncDisposable & {
  readonly address: Execution['address']
  /** Undefined while it waits for its restart. */
  current(): Execution | undefined
  beginLameDuck(): void
  /** Called again, it shortens the drain to the new deadline. */
  drain(deadlineMs: number): Promise<void>
}

export type SuperviseExecutionDeps = BaseDeps & {
  readonly lifecycle: Pick<Lifecycle, 'degraded'>
  /** Starts the service; `port` is the one of the first start, undefined at that one. */
  readonly start: (port: number | undefined) => Promise<Execution>
}

const RESTART = { firstMs: 1000, maxMs: 30_000 }
const RESET_AFTER_MS = 120_000

/** Restarts the execution service, in a process of several services, when it ends by itself. Throws when the first start fails. */
export async function superviseExecution(deps: SuperviseExecutionDeps): Promise<SupervisedExecution> {
  const { log, clock, random, lifecycle } = deps
  let address: Execution['address'] | undefined
  let drainMs: number | undefined
  let draining: Execution | undefined

  async function open(events: InstanceEvents): Promise<AsyncDisposable & { readonly execution: Execution }> {
    const execution = await deps.start(address?.port)
    address ??= execution.address
    void execution.ended.then(() => events.failed(new Error('no event for 30 s')))
    return {
      execution,
      async [Symbol.asyncDispose]() {
        if (drainMs !== undefined) {
          draining = execution
          await execution.drain(drainMs)
        }
        await execution[Symbol.asyncDispose]()
      },
    }
  }

  const supervised = supervise(
    { backoff: RESTART, resetAfterMs: RESET_AFTER_MS, firstStartsMax: 1 },
    {
      clock,
      random,
      start: (events) => openSupervised(events, () => open(events)),
      onRestart({ error, delayMs, failedStarts }) {
        // The service itself reports a silent source, and that it has recovered.
        if (failedStarts > 0) lifecycle.degraded('execution', 'it could not be started')
        log.warn({ err: error, delayMs }, 'the execution service is restarted')
      },
    },
  )
  const current = (): Execution | undefined => supervised.instance?.value?.execution
  await supervised.started
  assert(address !== undefined)
  return {
    address,
    current,
    beginLameDuck: () => current()?.beginLameDuck(),
    async drain(deadlineMs) {
      drainMs = deadlineMs
      if (draining !== undefined) return draining.drain(deadlineMs)
      await supervised[Symbol.asyncDispose]()
    },
    [Symbol.asyncDispose]: () => supervised[Symbol.asyncDispose](),
  }
}
