import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNodeSha256 } from '../../solana/crypto/node-sha256.ts'
import { createInputMemory, openInputReader } from '../decoded/input-ring.ts'
import type { RelayOptions } from './protocol.ts'
import { warmUp } from './warm-up.ts'

const LIMITS = { shredsPerSlotMax: 32_768, window: { backSlots: 64, aheadSlots: 32 } }
const RATE = 1e9

const OPTIONS: RelayOptions = {
  port: {
    listen: { host: '127.0.0.1', port: 0 },
    sources: ['127.0.0.1'],
    engine: 'sendmmsg',
    receiveBufferBytes: 1 << 20,
    sendBufferBytes: 1 << 20,
    wakeFd: 0,
  },
  version: undefined,
  signatures: 'off',
  signatureFailuresPerSecond: 0,
  limits: LIMITS,
  limitsMax: LIMITS,
  caps: {
    destinationPacketsPerSecond: RATE,
    destinationBytesPerSecond: RATE,
    totalPacketsPerSecond: RATE,
    totalBytesPerSecond: RATE,
  },
  schedule: { priority: 'normal' },
  leaders: [],
  destinations: [],
}

/** A hundredth of a millisecond passes with each reading, so that neither a slow machine nor a fast one changes how much is run. */
function slowClock() {
  let ms = 0
  return { monotonicMs: () => (ms += 0.01) }
}

test('the shreds of a warm-up pass the relay, with and without signature checks', async () => {
  const sha256 = createNodeSha256()
  assert.equal(await warmUp(OPTIONS, { sha256, clock: slowClock() }), 4 * 3000)
  const checked = { ...OPTIONS, signatures: 'auto', signatureFailuresPerSecond: 200 } as const
  assert.equal(await warmUp(checked, { sha256, clock: slowClock() }), 4 * (3000 + 512))
  // With the engine of ShredStream Decoded: into memory of the warm-up, not into the engine's.
  const decodedInput = createInputMemory(16)
  assert.equal(await warmUp({ ...OPTIONS, decodedInput }, { sha256, clock: slowClock() }), 4 * 3000)
  assert.deepEqual([openInputReader(decodedInput).discard(), openInputReader(decodedInput).dropped()], [0, 0])
})
