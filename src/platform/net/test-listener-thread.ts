import { openWorkerPort } from '../process/worker.ts'
import { openListener } from './listener.ts'

export type ListenerThreadData = {
  readonly host: string
  readonly port: number
  /** How long the thread does other work before it stops, so that connections queue. */
  readonly busyMs: number
  /** Set to 1 right before the thread stops accepting. */
  readonly stopping: Int32Array<SharedArrayBuffer>
  readonly accepted: Int32Array<SharedArrayBuffer>
}

/** For tests: a thread that listens with `reusePort` and echoes, until it is sent `stop`. */
const link = openWorkerPort<'stop', 'listening' | 'stopped'>()
if (link === undefined) throw new Error('this file runs only as a worker thread')
const { post } = link
const { host, port, busyMs, stopping, accepted } = link.data as ListenerThreadData
const listener = await openListener(
  { host, port, reusePort: true },
  {
    caps: { isExempt: () => true },
    onConnection(socket) {
      Atomics.add(accepted, 0, 1)
      socket.on('data', (chunk) => socket.write(chunk))
    },
  },
)
link.onMessage(() => {
  Atomics.wait(stopping, 0, 0, busyMs)
  Atomics.store(stopping, 0, 1)
  void listener.stopAccepting().then(() => post('stopped'))
})
post('listening')
