import { openWorkerPort } from '../../platform/process/worker.ts'
import type { FromVerifier, ToVerifier } from './verify-thread.ts'

/** For tests: a thread that is there and dies of the first thing it is asked. */
const link = openWorkerPort<ToVerifier, FromVerifier>()
link?.onMessage(() => {
  throw new Error('out of memory')
})
link?.post({ kind: 'ready' })
