import {
  MessageChannel,
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  type Transferable,
  Worker,
  workerData,
} from 'node:worker_threads'

/** A thread of this process, seen from the one that started it. */
export type WorkerThread<In> = AsyncDisposable & {
  post(message: In): void
}

export type WorkerDeps<Out> = {
  readonly onMessage: (message: Out) => void
  /** The thread ended without being asked to. */
  readonly onDeath: (error: Error) => void
  /** How long it may take to end when it is asked to; a thread that never rests does not hear that it is. */
  readonly endMs?: number
}

const END_MS = 1000
const YOUNG_MIB = 8

/** Starts a file as a thread. `data` is what `openWorkerPort` gives there; it must be plain. */
export function startWorker<In, Out>(entry: URL, data: unknown, deps: WorkerDeps<Out>): WorkerThread<In> {
  const { port1: ours, port2: theirs } = new MessageChannel()
  const worker = new Worker(entry, {
    workerData: { data, port: theirs },
    transferList: [theirs],
    // Threads here work in buffers of their own and make little garbage; by default each would keep tens of megabytes for it.
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
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
      // The news of its end may overtake its last words, which often say why.
      for (let left = receiveMessageOnPort(ours); left !== undefined && !isEnding; left = receiveMessageOnPort(ours)) {
        deps.onMessage(left.message as Out)
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
      const cut = setTimeout(() => void worker.terminate(), deps.endMs ?? END_MS)
      await ended
      clearTimeout(cut)
    },
  }
}

/** The other end, inside the thread. */
export type WorkerPort<In, Out> = {
  readonly data: unknown
  post(message: Out, transfer?: Transferable[]): void
  onMessage(listener: (message: In) => void): void
  /** The next message, if one has come: for a thread that never rests, and so is never told of one. */
  poll(): In | undefined
  /** The starter wants it to end, or is gone. */
  onEnd(listener: () => void): void
}

/** Undefined in the main thread, where a file may be imported without being the entry of a thread. */
export function openWorkerPort<In, Out>(): WorkerPort<In, Out> | undefined {
  if (parentPort === null) return undefined
  const given = workerData as { data: unknown; port: MessagePort }
  return {
    data: given.data,
    post: (message, transfer = []) => given.port.postMessage(message, transfer),
    onMessage: (listener) => void given.port.on('message', listener),
    poll: () => receiveMessageOnPort(given.port)?.message as In | undefined,
    onEnd: (listener) => void given.port.once('close', listener),
  }
}

/** Milliseconds that all threads of the process count from the same moment, however the wall clock is set meanwhile. */
export function processTimeMs(): number {
  return performance.timeOrigin + performance.now()
}
