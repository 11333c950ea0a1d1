import { createBackoff } from '../../core/backoff.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import { startWorker, type WorkerThread } from '../../platform/process/worker.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { FromRelay, RelayOptions, RelayReport, ToRelay } from './protocol.ts'

export type RelayLinkDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  onReport(report: RelayReport): void
  onState(isUp: boolean): void
}

export type RelayReady = Extract<FromRelay, { kind: 'ready' }>

/** The relaying thread as the service sees it: kept running, told what is new. */
export type RelayLink = AsyncDisposable & {
  readonly ready: RelayReady
  /** Resolves when the relay sends to these destinations and no others. */
  setDestinations(list: RelayOptions['destinations']): Promise<void>
  setLeaders(ranges: RelayOptions['leaders']): void
}

const STOP_MS = 2000

/** Starts the thread and waits until its port is open; throws when it cannot be. A thread that dies later is started anew. */
export async function startRelayLink(options: RelayOptions, deps: RelayLinkDeps): Promise<RelayLink> {
  const { clock, log } = deps
  const backoff = createBackoff({ firstMs: 200, maxMs: 30_000 }, deps.random)
  const settling = new Map<number, () => void>()
  const stopped = Promise.withResolvers<void>()
  let { destinations, leaders } = options
  let thread: WorkerThread<ToRelay> | undefined
  let retry: Timer | undefined
  let round = 0
  let isClosing = false
  /** A port that the system chose is asked for again, so that sources need not be told. */
  let listen = options.port.listen

  function start(onReady: (ready: RelayReady) => void, onFailed: (error: Error) => void): void {
    const started = startWorker<ToRelay, FromRelay>(
      threadFile(),
      { ...options, port: { ...options.port, listen }, destinations, leaders } satisfies RelayOptions,
      {
        onMessage(message) {
          switch (message.kind) {
            case 'ready':
              listen = message.address
              return onReady(message)
            case 'failed':
              return onFailed(new ServiceError(message.code, message.message, message.fix ? { fix: message.fix } : {}))
            case 'settled':
              settling.get(message.round)?.()
              settling.delete(message.round)
              return
            case 'report':
              return deps.onReport(message)
            case 'stopped':
              return stopped.resolve()
          }
        },
        onDeath: onFailed,
        endMs: 0,
      },
    )
    thread = started
  }

  function startAgain(error: Error): void {
    if (isClosing || retry !== undefined) return
    deps.onState(false)
    log.error({ err: error }, 'the relaying thread is gone and is started again')
    retry = clock.setTimer(backoff.nextMs(), () => {
      retry = undefined
      void thread?.[Symbol.asyncDispose]()
      start(() => {
        backoff.reset()
        // The new thread began with what was known when it was started.
        for (const settled of settling.values()) settled()
        settling.clear()
        thread?.post({ kind: 'destinations', list: destinations, round: ++round })
        deps.onState(true)
      }, startAgain)
    })
  }

  const opened = Promise.withResolvers<RelayReady>()
  let hasOpened = false
  start(
    (message) => {
      hasOpened = true
      opened.resolve(message)
    },
    // The first start is the caller's to answer for: a port in use is told once, not logged as a loss.
    (error) => (hasOpened ? startAgain(error) : opened.reject(error)),
  )
  const ready = await opened.promise.catch(async (error: unknown) => {
    isClosing = true
    await thread?.[Symbol.asyncDispose]()
    throw error
  })

  return {
    ready,
    setDestinations(list) {
      destinations = list
      const { promise, resolve } = Promise.withResolvers<void>()
      round += 1
      settling.set(round, resolve)
      thread?.post({ kind: 'destinations', list, round })
      return promise
    },
    setLeaders(ranges) {
      leaders = ranges
      thread?.post({ kind: 'leaders', ranges })
    },
    async [Symbol.asyncDispose]() {
      isClosing = true
      retry?.cancel()
      for (const settled of settling.values()) settled()
      thread?.post({ kind: 'stop' })
      // A thread that does not answer is ended all the same.
      const limit = clock.setTimer(STOP_MS, stopped.resolve)
      await stopped.promise
      limit.cancel()
      await thread?.[Symbol.asyncDispose]()
    },
  }
}

/** The source as it stands here, or what a published package makes of it. */
function threadFile(): URL {
  return import.meta.url.endsWith('.ts')
    ? new URL('./thread.ts', import.meta.url)
    : new URL('./thread.js', import.meta.url)
}
