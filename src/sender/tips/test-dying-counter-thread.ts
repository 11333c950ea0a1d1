import { openWorkerPort } from '../../platform/process/worker.ts'
import type { FromCounter, ToCounter } from './counter-thread.ts'

/** For tests: a counter thread that dies on its first batch. */
const link = openWorkerPort<ToCounter, FromCounter>()
link?.onMessage(() => {
  throw new Error('out of memory')
})
link?.post({ kind: 'ready' })
