import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CryptoStream } from './crypto-stream.ts'
import { KeyRing } from './key-ring.ts'
import { Outbox } from './outbox.ts'
import { PeerIds } from './peer-ids.ts'
import { ReceivedPackets } from './received-packets.ts'
import { Recovery } from './recovery.ts'
import { SendStreams } from './send-streams.ts'
import { CODES, QuicError } from './wire.ts'

/** A connection whose peer replaces its connection ids again and again. */
function open() {
  const ids = new PeerIds(Uint8Array.of(0))
  const keys = new KeyRing()
  keys.install('application', { client: new Uint8Array(32), server: new Uint8Array(32) })
  const windowBytes = 128 * Outbox.datagramBytes
  const recovery = new Recovery({
    initialWindowBytes: windowBytes,
    windowBytesMin: windowBytes,
    datagramBytes: Outbox.datagramBytes,
  })
  recovery.isConfirmed = true
  const forLevels = <Value>(make: () => Value) => ({ initial: make(), handshake: make(), application: make() })
  const outbox = new Outbox({
    ...{ source: new Uint8Array(8), ids, keys, recovery, keyUpdatePackets: 2 ** 22 },
    streams: new SendStreams({ queuedMax: 1, activeMax: 1, pieceBytesMax: Outbox.pieceBytes }),
    received: forLevels(() => new ReceivedPackets()),
    crypto: forLevels(() => new CryptoStream()),
    send: () => undefined,
  })
  let nowMs = 0
  return {
    renew(sequence: number): void {
      const resetToken = new Uint8Array(16)
      ids.add({ sequence, id: Uint8Array.of(sequence & 255), resetToken, retirePrior: sequence })
      nowMs += 1
      outbox.flush(nowMs, { isAckDue: false, mayStream: true })
    },
    /** The peer acknowledges everything that was sent. */
    acknowledge(): void {
      const nextNumber = outbox.nextNumber('application')
      const ranges = [{ from: 0, to: nextNumber - 1 }]
      assert.ok(recovery.onAck('application', ranges, { delayMs: 0, nowMs, nextNumber }))
    },
  }
}

test('a peer that never acknowledges the end of its connection ids may replace 64 of them', () => {
  const { renew } = open()
  for (let sequence = 1; sequence <= 64; sequence++) renew(sequence)
  assert.throws(
    () => renew(65),
    (error) => error instanceof QuicError && error.code === CODES.connectionIdLimit,
  )
})

test('a peer that acknowledges may replace its connection ids as often as it likes', () => {
  const { renew, acknowledge } = open()
  for (let sequence = 1; sequence <= 1000; sequence++) {
    renew(sequence)
    if (sequence % 50 === 0) acknowledge()
  }
})

test('an id that arrives again after it was retired is retired once', () => {
  const ids = new PeerIds(Uint8Array.of(0))
  const renewed = { resetToken: new Uint8Array(16), retirePrior: 2 }
  ids.add({ sequence: 2, id: Uint8Array.of(2), ...renewed })
  const retired: number[] = []
  for (let copy = 0; copy < 200; copy++) {
    ids.add({ sequence: 1, id: Uint8Array.of(1), ...renewed })
    retired.push(...ids.retired.splice(0))
  }
  assert.deepEqual(retired, [0, 1])
})
