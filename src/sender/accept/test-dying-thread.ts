import { openWorkerPort } from '../../platform/process/worker.ts'
import type { FromVerifier, ToVerifier } from './verify-thread.ts'

/** For tests: a verifier thread that dies on its first message. */
const link = openWorkerPort<ToVerifier, FromVerifier>()
link?.onMessage(() => {
  throw new Error('out of memory')
})
link?.post({ kind: 'ready' })
