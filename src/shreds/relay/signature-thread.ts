import type { KeyObject } from 'node:crypto'
import { setBounded } from '../../core/bounded-map.ts'
import { scheduleThisThread } from '../../platform/native/thread-schedule.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { openWorkerPort } from '../../platform/process/worker.ts'
import { wake } from '../../platform/udp/wake-event.ts'
import { createSigningKey, importPublicKey, signEd25519, verifyEd25519 } from '../../solana/crypto/ed25519.ts'
import { ROOT_BYTES } from '../../solana/shred/shred.ts'
import type { FromSignatureThread, SignatureThreadOptions, ToSignatureThread } from './signature-check-in-worker.ts'
import { createSignatureMemory, openSignatureReader, openSignatureSubmitter } from './signature-ring.ts'

/** Entry file of the thread that checks signatures for the relay. Started by `signature-check-in-worker.ts`; ends after a `stop` message. */
const link = openWorkerPort<ToSignatureThread, FromSignatureThread>()
if (link === undefined) throw new Error('this file runs only as a worker thread')
const { memory, wakeFd, priority } = link.data as SignatureThreadOptions

/** How long it sleeps before it looks for messages. */
const SLEEP_MS = 250
/** How often it reports that it runs, which wakes the main thread. */
const ALIVE_MS = 1000
/** Checks of the warm-up, which take some 40 ms, in groups. */
const WARM_UP_GROUPS = 16
const WARM_UP_CHECKS = 16
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

/** Runs the code of a check before the first one is needed: a verdict of cold code can be late, and then the relay checks by itself for a second. */
function warmUp(): void {
  const leader = createSigningKey(new Uint8Array(32).fill(1))
  const roots = new Uint8Array(ROOT_BYTES)
  const request = { roots, rootAt: 0, signatures: signEd25519(roots, leader), signatureAt: 0, key: leader.publicKey }
  const ownMemory = createSignatureMemory()
  const [submitter, ownReader] = [openSignatureSubmitter(ownMemory), openSignatureReader(ownMemory)]
  for (let group = 0; group < WARM_UP_GROUPS; group++) {
    for (let check = 0; check < WARM_UP_CHECKS; check++) submitter.submit(request)
    ownReader.read(isSigned, () => {})
    while (submitter.nextVerdict() >= 0) submitter.takeVerdict()
  }
  keys.clear()
}

warmUp()
const reader = openSignatureReader(memory)
await scheduleThisThread({ priority }, 1)
reader.setAlive(true)
link.post({ kind: 'ready' })
for (let aliveMs = systemClock.monotonicMs(); ; ) {
  reader.read(isSigned, () => wake(wakeFd))
  if (link.poll()?.kind === 'stop') break
  const nowMs = systemClock.monotonicMs()
  if (nowMs - aliveMs >= ALIVE_MS) {
    aliveMs = nowMs
    link.post({ kind: 'alive' })
  }
  reader.wait(SLEEP_MS)
}
reader.setAlive(false)
