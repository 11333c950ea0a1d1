import { ServiceError } from '../../core/error.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { startStoppableWorker } from '../../platform/process/stoppable-worker.ts'
import { type InstanceEvents, supervise } from '../../platform/process/supervise.ts'
import type { WorkerThread } from '../../platform/process/worker.ts'
import { closeDescriptors, createDescriptorMemory } from '../../platform/udp/descriptor-list.ts'
import type { FromRelay, RelayOptions, RelayReport, ToRelay } from './protocol.ts'
import { type SignatureCheckWorker, startSignatureCheckInWorker } from './signature-check-in-worker.ts'

export type RelayWorkerDeps = BaseDeps & {
  onReport(report: RelayReport): void
  onState(isUp: boolean): void
  /** The checking thread has ended and is started again; meanwhile the relay checks itself. */
  onSignatureRestart?: (() => void) | undefined
  /** The file of the relay thread; tests pass one that blocks. */
  readonly entry?: URL | undefined
  /** The file of the checking thread; tests pass one that can die. */
  readonly signatureEntry?: URL | undefined
}

export type RelayReady = Extract<FromRelay, { kind: 'ready' }>

/** The relay thread as the service sees it. */
export type RelayWorker = AsyncDisposable & {
  readonly ready: RelayReady
  /** Resolves when the relay sends to these destinations and no others. */
  setDestinations(list: RelayOptions['destinations']): Promise<void>
  setLeaders(ranges: RelayOptions['leaders']): void
  setLimits(limits: RelayOptions['limits']): void
}

type RelayThread = WorkerThread<ToRelay>

const RESTART = { firstMs: 200, maxMs: 30_000 }
/** The thread reports five times a second. */
const LIVENESS_MS = 30_000
const STOP_MS = 2000
const THREAD = new URL('./thread.ts', import.meta.url)

/** Starts the relay thread, and the checking thread if signatures are checked, and waits until its UDP port is open; throws when it cannot be opened. A thread that dies later is restarted. */
export async function startRelayInWorker(options: RelayOptions, deps: RelayWorkerDeps): Promise<RelayWorker> {
  const { clock, random, log, entry = THREAD } = deps
  await using opening = new AsyncDisposableStack()
  let signatures: SignatureCheckWorker | undefined
  if (options.signatures === 'auto' && options.port.engine !== 'dgram') {
    signatures = await startSignatureCheckInWorker(
      { priority: options.schedule.priority },
      { clock, random, log, entry: deps.signatureEntry, onRestart: deps.onSignatureRestart },
    )
    if (signatures !== undefined) opening.use(signatures)
  }
  const opened = Promise.withResolvers<RelayReady>()
  const descriptorMemory = createDescriptorMemory()
  const settling = new Map<number, () => void>()
  let { destinations, leaders, limits } = options
  let round = 0
  /** A restarted thread takes the port that the system chose at first, so that sources keep their target. */
  let listen = options.port.listen

  function start(events: InstanceEvents): RelayThread {
    const thread = startStoppableWorker<ToRelay, FromRelay>(
      entry,
      {
        ...options,
        port: { ...options.port, listen, wakeFd: signatures?.wakeFd },
        signatureMemory: signatures?.memory,
        descriptorMemory,
        destinations,
        leaders,
        limits,
      } satisfies RelayOptions,
      {
        clock,
        onMessage(message) {
          switch (message.kind) {
            case 'ready':
              listen = message.address
              events.ready()
              return onReady(message, thread)
            case 'failed':
              return thread.fail(
                new ServiceError(message.code, message.message, message.fix ? { fix: message.fix } : {}),
              )
            case 'settled':
              settling.get(message.round)?.()
              settling.delete(message.round)
              return
            case 'report':
              events.alive()
              return deps.onReport(message)
          }
        },
        onDeath: events.failed,
        stopMs: STOP_MS,
      },
    )
    return {
      post: thread.post,
      async [Symbol.asyncDispose]() {
        await thread[Symbol.asyncDispose]()
        // Descriptors of a thread that was terminated: the next one could not open the port.
        closeDescriptors(descriptorMemory)
      },
    }
  }

  function onReady(message: RelayReady, thread: RelayThread): void {
    if (supervised.restarts === 0) return opened.resolve(message)
    // The thread was started with the destinations of that moment; these are the current ones.
    settleAll()
    thread.post({ kind: 'destinations', list: destinations, round: ++round })
    deps.onState(true)
  }

  function settleAll(): void {
    for (const settled of settling.values()) settled()
    settling.clear()
  }

  const supervised = opening.use(
    supervise(
      { name: 'the relay thread', backoff: RESTART, livenessMs: LIVENESS_MS, firstStartsMax: 1 },
      {
        clock,
        random,
        start,
        onRestart({ error, delayMs }) {
          deps.onState(false)
          log.error({ err: error, delayMs }, 'the relay thread died and is restarted')
        },
      },
    ),
  )
  await supervised.started
  const ready = await opened.promise

  const running = opening.move()
  return {
    ready,
    setDestinations(list) {
      destinations = list
      const { promise, resolve } = Promise.withResolvers<void>()
      round += 1
      settling.set(round, resolve)
      supervised.instance?.post({ kind: 'destinations', list, round })
      return promise
    },
    setLeaders(ranges) {
      leaders = ranges
      supervised.instance?.post({ kind: 'leaders', ranges })
    },
    setLimits(next) {
      limits = next
      supervised.instance?.post({ kind: 'limits', limits })
    },
    async [Symbol.asyncDispose]() {
      settleAll()
      await running[Symbol.asyncDispose]()
    },
  }
}
