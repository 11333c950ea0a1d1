import type { KeyObject } from 'node:crypto'
import { setBounded } from '../../core/bounded-map.ts'
import { scheduleThisThread } from '../../platform/native/thread-schedule.ts'
import { openWorkerPort } from '../../platform/process/worker.ts'
import { wake } from '../../platform/udp/wake-event.ts'
import { importPublicKey, verifyEd25519 } from '../../solana/crypto/ed25519.ts'
import type { FromSignatureThread, SignatureThreadOptions, ToSignatureThread } from './signature-check-in-worker.ts'
import { openSignatureReader } from './signature-ring.ts'

/** Entry file of the thread that checks signatures for the relay. Started by `signature-check-in-worker.ts`; ends after a `stop` message. */
const link = openWorkerPort<ToSignatureThread, FromSignatureThread>()
if (link === undefined) throw new Error('this file runs only as a worker thread')
const { memory, wakeFd, priority } = link.data as SignatureThreadOptions

/** How long it sleeps before it looks for messages and reports that it runs. */
const SLEEP_MS = 250
/** Cache of imported keys: more than an epoch has leaders. */
const KEYS_MAX = 4096
const keys = new Map<string, KeyObject | undefined>()

function keyOf(bytes: Uint8Array): KeyObject | undefined {
  const name = Buffer.from(bytes).toString('latin1')
  if (keys.has(name)) return keys.get(name)
  const key = importPublicKey(bytes)
  setBounded(keys, name, key, KEYS_MAX)
  return key
}

function isSigned(root: Uint8Array, signature: Uint8Array, key: Uint8Array): boolean {
  const imported = keyOf(key)
  return imported !== undefined && verifyEd25519(root, signature, imported)
}

const reader = openSignatureReader(memory)
await scheduleThisThread({ priority }, 1)
reader.setAlive(true)
link.post({ kind: 'ready' })
for (;;) {
  reader.read(isSigned, () => wake(wakeFd))
  if (link.poll()?.kind === 'stop') break
  link.post({ kind: 'alive' })
  reader.wait(SLEEP_MS)
}
reader.setAlive(false)
