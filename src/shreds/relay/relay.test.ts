import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { blockPackets, LEADER_ID, VERSION } from '../../../test/support/shreds/rig.ts'
import { TICK_MS } from '../../platform/udp/port.ts'
import { openUdpWarmUpPort } from '../../platform/udp/warm-up-port.ts'
import { createNodeSha256 } from '../../solana/crypto/node-sha256.ts'
import { HELD_PACKETS_MAX } from './held-packets.ts'
import { CHECK_LATE_MS, LATE_PAUSE_MS } from './pending-checks.ts'
import type { RelayOptions } from './protocol.ts'
import { runRelay } from './relay.ts'
import { createSignatureMemory, openSignatureReader, type SignatureReader } from './signature-ring.ts'

const LIMITS = { shredsPerSlotMax: 32_768, window: { backSlots: 64, aheadSlots: 32 } }
const RATE = 1e9
const PORT = {
  listen: { host: '0.0.0.0', port: 0 },
  receiveBufferBytes: 1 << 20,
  sendBufferBytes: 1 << 20,
  spareCells: HELD_PACKETS_MAX,
  wakeFd: 0,
}
const OPTIONS: RelayOptions = {
  port: { ...PORT, sources: ['0.0.0.0'] },
  version: VERSION,
  signatures: 'auto',
  signatureFailuresPerSecond: 200,
  limits: LIMITS,
  limitsMax: LIMITS,
  caps: {
    destinationPacketsPerSecond: RATE,
    destinationBytesPerSecond: RATE,
    totalPacketsPerSecond: RATE,
    totalBytesPerSecond: RATE,
  },
  schedule: { priority: 'normal' },
  leaders: [{ fromSlot: 0, toSlot: 10_000, identities: [LEADER_ID] }],
  destinations: [],
}
/** Packets of each FEC set that are received. */
const SHREDS = 3

type Thread = {
  /** The checking thread dies; the next one is another reader of the same memory. */
  restart(): void
  setAlive(isAlive: boolean): void
  /** Sets the verdicts that are due and returns how many. */
  setVerdicts(): number
}

/** What happens at a look for packets, in this order; afterwards the relay stops. */
type Step = { readonly afterMs?: number; readonly slot?: number; readonly act?: (thread: Thread) => void }

/** A tick is due, at which the relay stops. */
const LAST_STEP: Step = { afterMs: TICK_MS }

/** Runs a relay on a port that makes no system call. Its checking thread is the test. */
async function run(steps: readonly Step[]) {
  const signatureMemory = createSignatureMemory()
  let reader: SignatureReader = openSignatureReader(signatureMemory)
  reader.setAlive(true)
  const thread: Thread = {
    restart() {
      reader = openSignatureReader(signatureMemory)
      reader.setAlive(true)
    },
    setAlive: (isAlive) => reader.setAlive(isAlive),
    setVerdicts: () =>
      reader.read(
        () => true,
        () => {},
      ),
  }
  const left = [...steps]
  const totals = { relayed: 0, checkedHere: 0 }
  let nowMs = 0
  const clock = { monotonicMs: () => nowMs }
  const next = (): Uint8Array[] => {
    const { afterMs = 0, slot, act } = left.shift() ?? LAST_STEP
    nowMs += afterMs
    act?.(thread)
    return slot === undefined ? [] : blockPackets(slot).slice(0, SHREDS)
  }
  using port = openUdpWarmUpPort(PORT, { clock, next, isSecondKind: false })
  await runRelay(
    { ...OPTIONS, signatureMemory },
    {
      port,
      clock,
      sha256: createNodeSha256(),
      post(message) {
        if (message.kind !== 'report') return
        totals.relayed += message.counts.relayed
        totals.checkedHere += message.counts.checkedHere
      },
      poll: () => (left.length === 0 ? { kind: 'stop' } : undefined),
    },
  )
  return totals
}

/** A look each millisecond. */
const pass = (ms: number): Step[] => Array.from({ length: ms }, () => ({ afterMs: 1 }))

describe('the checking thread of a relay', () => {
  test('gets checks again after a late verdict, which comes when no packet is held', async () => {
    const submitted: number[] = []
    const note = (thread: Thread): void => void submitted.push(thread.setVerdicts())
    const totals = await run([
      { slot: 500 },
      ...pass(CHECK_LATE_MS + 1),
      { act: note },
      ...pass(LATE_PAUSE_MS + 20),
      { slot: 501 },
      { afterMs: 1, act: note },
      ...pass(20),
    ])
    assert.deepEqual(submitted, [1, 1])
    assert.deepEqual(totals, { relayed: 2 * SHREDS, checkedHere: 1 })
  })

  test('gets checks again after it died with a check and was restarted', async () => {
    const submitted: number[] = []
    const totals = await run([
      { slot: 500 },
      { act: (thread) => thread.setAlive(false) },
      ...pass(20),
      { slot: 501 },
      ...pass(LATE_PAUSE_MS),
      {
        act(thread) {
          thread.restart()
          submitted.push(thread.setVerdicts())
        },
      },
      ...pass(20),
      { slot: 502 },
      { afterMs: 1, act: (thread) => void submitted.push(thread.setVerdicts()) },
      ...pass(20),
    ])
    // The one that the dead thread left, which the relay has decided; then the new one.
    assert.deepEqual(submitted, [1, 1])
    assert.deepEqual(totals, { relayed: 3 * SHREDS, checkedHere: 2 })
  })

  test('gets no further check, for which packets would wait, while its late verdict does not come', async () => {
    let submitted = 0
    const totals = await run([
      { slot: 500 },
      ...pass(LATE_PAUSE_MS + 20),
      { slot: 501 },
      { slot: 502 },
      { act: (thread) => void (submitted = thread.setVerdicts()) },
    ])
    assert.equal(submitted, 1)
    assert.deepEqual(totals, { relayed: 3 * SHREDS, checkedHere: 3 })
  })
})
