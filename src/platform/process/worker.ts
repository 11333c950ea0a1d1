import { setFlagsFromString } from 'node:v8'
import {
  MessageChannel,
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  type Transferable,
  Worker,
  workerData,
} from 'node:worker_threads'
import { entryUrl } from './entry.ts'

/** A worker thread, seen from the thread that started it. Disposing asks it to end and terminates it after `endMs`. */
export type WorkerThread<In> = AsyncDisposable & {
  post(message: In): void
}

export type WorkerDeps<Out> = {
  readonly onMessage: (message: Out) => void
  /** The thread ended without being asked to. */
  readonly onDeath: (error: Error) => void
  /** How long the thread may take to end once it is asked to. A thread that never yields does not see the request. */
  readonly endMs?: number
  /**
   * Memory for new objects, three semi-spaces, each rounded up to a power of two. A thread that works in buffers of its own makes little garbage; by default
   * each would keep tens of megabytes for it.
   */
  readonly youngMib?: number
  /** Memory for all other objects; a thread that needs more ends. By default as the runtime chooses. */
  readonly oldMib?: number
}

const END_MS = 1000
const YOUNG_MIB = 8
/**
 * The launcher limits the young generation of the main thread by a flag, which is one for the process: while it is set, the runtime takes it for the threads
 * too and ignores their `youngMib`. The main thread has read it long before.
 */
const NO_FLAG_FOR_THREADS = '--max-semi-space-size=0'

/** Starts a file as a thread; `entry` is as in `entryUrl`. `data` is cloned and given to the thread by `openWorkerPort`. */
export function startWorker<In, Out>(entry: URL, data: unknown, deps: WorkerDeps<Out>): WorkerThread<In> {
  const { port1: ours, port2: theirs } = new MessageChannel()
  setFlagsFromString(NO_FLAG_FOR_THREADS)
  const worker = new Worker(entryUrl(entry), {
    name: nameOf(entry),
    workerData: { data, port: theirs },
    transferList: [theirs],
    resourceLimits: {
      maxYoungGenerationSizeMb: deps.youngMib ?? YOUNG_MIB,
      ...(deps.oldMib === undefined ? {} : { maxOldGenerationSizeMb: deps.oldMib }),
    },
  })
  let isEnding = false
  let failure: Error | undefined
  ours.on('message', (message: Out) => {
    if (!isEnding) deps.onMessage(message)
  })
  worker.on('error', (error) => {
    failure = error instanceof Error ? error : new Error(String(error))
  })
  const ended = new Promise<void>((resolve) => {
    worker.once('exit', (code) => {
      // The exit event may overtake the last messages, which often give the reason.
      for (let next = receiveMessageOnPort(ours); next !== undefined && !isEnding; next = receiveMessageOnPort(ours)) {
        deps.onMessage(next.message as Out)
      }
      ours.close()
      resolve()
      if (!isEnding) deps.onDeath(failure ?? new Error(`the thread ended with code ${code}`))
    })
  })
  return {
    post: (message) => ours.postMessage(message),
    async [Symbol.asyncDispose]() {
      isEnding = true
      ours.close()
      const limit = setTimeout(() => void worker.terminate(), deps.endMs ?? END_MS)
      await ended
      clearTimeout(limit)
    },
  }
}

/** The port inside the thread. */
export type WorkerPort<In, Out> = {
  readonly data: unknown
  post(message: Out, transfer?: Transferable[]): void
  onMessage(listener: (message: In) => void): void
  /** The next message, if one has arrived: for a thread that never yields to its event loop. */
  poll(): In | undefined
  /** The starting thread asks this one to end, or is gone. */
  onEnd(listener: () => void): void
}

/** Undefined in the main thread, where a file may be imported without being the entry of a thread. */
export function openWorkerPort<In, Out>(): WorkerPort<In, Out> | undefined {
  if (parentPort === null) return undefined
  const { data, port } = workerData as { data: unknown; port: MessagePort }
  return {
    data,
    post: (message, transfer = []) => port.postMessage(message, transfer),
    onMessage: (listener) => void port.on('message', listener),
    poll: () => receiveMessageOnPort(port)?.message as In | undefined,
    onEnd: (listener) => void port.once('close', listener),
  }
}

/** Milliseconds on one scale for all threads of the process, independent of changes to the wall clock. */
export function processTimeMs(): number {
  return performance.timeOrigin + performance.now()
}

/** For debuggers and measurements: the folder and the file, such as `relay/thread`. */
function nameOf({ pathname }: URL): string {
  return pathname
    .split('/')
    .slice(-2)
    .join('/')
    .replace(/\.[jt]s$/, '')
}
