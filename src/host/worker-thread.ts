import { isMainThread, parentPort, receiveMessageOnPort, Worker, workerData } from 'node:worker_threads'

/** A thread of its own, as its owner sees it. */
export type WorkerThread<ToThread> = AsyncDisposable & { post(message: ToThread): void }

export type WorkerHandlers<FromThread> = {
  onMessage(message: FromThread): void
  /** It ended without being asked to: the error it died of, where there is one. */
  onEnd(error: Error | undefined): void
}

/** Starts `entry` as a thread. Disposing ends it, whatever it does. */
export function startWorkerThread<ToThread, FromThread>(
  entry: URL,
  data: unknown,
  handlers: WorkerHandlers<FromThread>,
): WorkerThread<ToThread> {
  const worker = new Worker(entry, { workerData: data })
  let isClosed = false
  let died: Error | undefined
  worker.on('message', (message: FromThread) => handlers.onMessage(message))
  worker.on('error', (error: Error) => {
    died = error
  })
  worker.on('exit', () => {
    if (!isClosed) handlers.onEnd(died)
    isClosed = true
  })
  return {
    post: (message) => worker.postMessage(message),
    async [Symbol.asyncDispose]() {
      isClosed = true
      await worker.terminate()
    },
  }
}

/** The thread's own end. Messages are fetched when the thread has time for them, so a thread that never yields hears them too. */
export type ParentLink<ToThread, FromThread> = {
  readonly data: unknown
  post(message: FromThread): void
  /** The next message, if one has come. */
  poll(): ToThread | undefined
}

export function parentLink<ToThread, FromThread>(): ParentLink<ToThread, FromThread> {
  const port = parentPort
  if (isMainThread || port === null) throw new Error('this file runs in a thread that was started for it')
  return {
    data: workerData,
    post: (message) => port.postMessage(message),
    poll: () => receiveMessageOnPort(port)?.message as ToThread | undefined,
  }
}
