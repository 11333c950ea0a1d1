import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, mutate, randomBytesOf, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { CryptoStream } from './crypto-stream.ts'
import { readFrames, writeAck, writeClose, writeCrypto, writeStream } from './frames.ts'
import { decodePacketNumber, readPacketHeads } from './packet.ts'
import { PeerIds } from './peer-ids.ts'
import { ReceivedPackets } from './received-packets.ts'
import * as tls from './tls-messages.ts'
import { readPeerParameters, writeOwnParameters } from './transport-parameters.ts'
import { ByteReader, ByteWriter, QuicError } from './wire.ts'

const RUNS = repeatsOf({ short: 5000, full: 200_000 })

/** Runs a parser over random bytes: it may throw its typed error and no other. */
function survives(
  read: (bytes: Uint8Array) => void,
  samples: readonly Uint8Array[],
  random: (below: number) => number,
): void {
  for (let run = 0; run < RUNS; run++) {
    const sample = samples[random(samples.length)] as Uint8Array
    const given = random(4) === 0 ? randomBytesOf(random, random(200)) : mutate(sample, random)
    try {
      read(given)
    } catch (error) {
      assert.ok(error instanceof QuicError, `${String(error)} for ${Buffer.from(given).toString('hex')}`)
    }
  }
}

const frame = (write: (to: ByteWriter) => void) => {
  const to = new ByteWriter(400)
  write(to)
  return to.written
}

test('frames: any bytes give a frame or a typed error', (t) => {
  const random = createRandom(seedOf(t))
  const samples = [
    frame((to) =>
      writeAck(
        to,
        [
          { from: 90, to: 100 },
          { from: 3, to: 50 },
        ],
        12,
      ),
    ),
    frame((to) => writeCrypto(to, 1000, randomBytesOf(random, 50))),
    frame((to) => writeStream(to, { stream: 6, offset: 70, data: randomBytesOf(random, 20), isLast: true })),
    frame((to) => writeClose(to, { code: 4, isApplication: true, reason: 'too_many' })),
    frame((to) => to.u8(0x18).varint(3).varint(1).u8(8).put(randomBytesOf(random, 24))),
    frame((to) =>
      to
        .u8(0x13)
        .varint(100_000)
        .u8(0x10)
        .varint(2 ** 40)
        .u8(0x1e)
        .u8(0)
        .u8(0)
        .u8(1),
    ),
  ]
  survives((bytes) => void [...readFrames(bytes)], samples, random)
  for (const sample of samples) assert.ok([...readFrames(sample)].length > 0)
})

test('headers, transport parameters and handshake messages: any bytes give a value or a typed error', (t) => {
  const random = createRandom(seedOf(t))
  const own = randomBytesOf(random, 8)
  const long = frame((to) =>
    to
      .u8(0xc3)
      .u32(1)
      .u8(8)
      .put(own)
      .u8(8)
      .put(randomBytesOf(random, 8))
      .varint(0)
      .varint(60)
      .put(randomBytesOf(random, 60)),
  )
  const short = Uint8Array.of(0x41, ...own, ...randomBytesOf(random, 60))
  survives((bytes) => void [...readPacketHeads(bytes, own)], [long, short, Uint8Array.of(...long, ...short)], random)
  survives(readPeerParameters, [writeOwnParameters({ idleTimeoutMs: 30_000, source: own, idsMax: 4 })], random)
  const context = Uint8Array.of(1, 2)
  const body = (message: Uint8Array) => message.subarray(4)
  const certificate = body(tls.writeCertificate(new Uint8Array(0), randomBytesOf(random, 100)))
  survives(tls.readCertificate, [certificate], random)
  survives(tls.readCertificateVerify, [body(tls.writeCertificateVerify(randomBytesOf(random, 64)))], random)
  const extensions = frame((to) =>
    to.u16(14).u16(16).u16(7).u16(5).u8(4).put(Buffer.from('quic')).u16(57).u16(3).u8(1).u8(1).u8(9),
  )
  survives((bytes) => void tls.readEncryptedExtensions(bytes), [extensions], random)
  survives(
    (bytes) => void tls.readCertificateRequest(bytes),
    [Uint8Array.of(2, ...context, 0, 8, 0, 13, 0, 4, 0, 2, 8, 7)],
    random,
  )
  const hello = frame((to) =>
    to
      .u16(0x0303)
      .put(randomBytesOf(random, 32))
      .u8(0)
      .u16(0x1301)
      .u8(0)
      .u16(46)
      .u16(43)
      .u16(2)
      .u16(0x0304)
      .u16(51)
      .u16(36)
      .u16(0x1d)
      .u16(32)
      .put(randomBytesOf(random, 32)),
  )
  assert.equal(tls.readServerHello(hello).length, 32)
  survives((bytes) => void tls.readServerHello(bytes), [hello], random)
})

test('variable-length integers: the examples of RFC 9000 appendix A.1, and all lengths back and forth', () => {
  const read = (hex: string) => new ByteReader(new Uint8Array(Buffer.from(hex, 'hex'))).varint()
  assert.equal(read('9d7f3e7d'), 494_878_333)
  assert.equal(read('7bbd'), 15_293)
  assert.equal(read('25'), 37)
  assert.equal(read('4025'), 37)
  assert.equal(
    read('c2197c5eff14e88c'),
    Number.MAX_SAFE_INTEGER < 151_288_809_941_952_652n ? Number.MAX_SAFE_INTEGER : 0,
  )
  for (const value of [0, 63, 64, 16_383, 16_384, 2 ** 30 - 1, 2 ** 30, 2 ** 40 + 5, 2 ** 52]) {
    const to = new ByteWriter(8).varint(value)
    assert.equal(new ByteReader(to.written).varint(), value)
  }
})

test('packet numbers: the example of RFC 9000 appendix A.3, and those near the beginning', () => {
  assert.equal(decodePacketNumber(0xa82f30ea, 0x9b32, 2), 0xa82f9b32)
  assert.equal(decodePacketNumber(-1, 0, 1), 0)
  assert.equal(decodePacketNumber(255, 0, 1), 256)
  assert.equal(decodePacketNumber(70_000, 65_535 & (70_001 - 30_000), 2), 70_001 - 30_000)
})

test('received packets become ACK ranges in any order, without duplicates', (t) => {
  const random = createRandom(seedOf(t))
  for (let run = 0; run < 200; run++) {
    const received = new ReceivedPackets()
    const seen = new Set<number>()
    for (let n = 0; n < 60; n++) {
      const number = random(40)
      assert.equal(received.add(number, n), !seen.has(number))
      seen.add(number)
    }
    const reported = received.ranges.flatMap(({ from, to }) =>
      Array.from({ length: to - from + 1 }, (_, i) => from + i),
    )
    assert.deepEqual(new Set(reported), seen)
    assert.equal(reported.length, seen.size)
    assert.equal(received.largest, Math.max(...seen))
  }
})

test('the number of remembered gaps is bounded', () => {
  const received = new ReceivedPackets()
  for (let number = 0; number < 10_000; number += 2) received.add(number, 0)
  assert.ok(received.ranges.length <= 32)
  assert.equal(received.add(1, 0), false, 'too old to distinguish it from a duplicate')
})

test('handshake bytes in any order and any split become the same messages', (t) => {
  const random = createRandom(seedOf(t))
  for (let run = 0; run < 200; run++) {
    const messages = Array.from({ length: 1 + random(4) }, (_, type) => {
      const length = random(300)
      return Uint8Array.of(type, 0, length >> 8, length & 255, ...randomBytesOf(random, length))
    })
    const whole = Buffer.concat(messages)
    const parts: { offset: number; data: Uint8Array }[] = []
    for (let at = 0; at < whole.length; ) {
      const size = 1 + random(120)
      parts.push({ offset: at, data: whole.subarray(at, at + size) })
      if (random(3) === 0)
        parts.push({ offset: Math.max(0, at - 20), data: whole.subarray(Math.max(0, at - 20), at + size) })
      at += size
    }
    parts.sort(() => random(3) - 1)
    const stream = new CryptoStream()
    const got = parts.flatMap(({ offset, data }) =>
      [...stream.receive(offset, data)].map(({ message }) => Buffer.from(message)),
    )
    assert.deepEqual(
      got,
      messages.map((message) => Buffer.from(message)),
    )
  }
  assert.throws(() => [...new CryptoStream().receive(70_000, new Uint8Array(10))], QuicError)
  const crumbs = new CryptoStream()
  assert.throws(() => {
    for (let at = 0; at < 1000; at++) for (const _ of crumbs.receive(1 + at * 2, new Uint8Array(1)));
  }, QuicError)
})

test('connection ids of the peer are retired on request and bounded, and its stateless reset is detected', () => {
  const ids = new PeerIds(Uint8Array.of(1))
  const token = (n: number) => new Uint8Array(16).fill(n)
  for (const sequence of [1, 2, 3])
    ids.add({ sequence, id: Uint8Array.of(sequence + 1), resetToken: token(sequence), retirePrior: 0 })
  assert.deepEqual(ids.current, Uint8Array.of(1))
  assert.throws(() => ids.add({ sequence: 4, id: Uint8Array.of(5), resetToken: token(4), retirePrior: 0 }), QuicError)
  const renewed = new PeerIds(Uint8Array.of(1))
  renewed.add({ sequence: 1, id: Uint8Array.of(2), resetToken: token(1), retirePrior: 1 })
  assert.deepEqual([renewed.current, renewed.retired], [Uint8Array.of(2), [0]])
  assert.ok(renewed.isReset(Uint8Array.of(...new Uint8Array(30), ...token(1))))
  assert.ok(!renewed.isReset(Uint8Array.of(...new Uint8Array(30), ...token(2))))
  assert.ok(!renewed.isReset(token(1)))
  assert.throws(
    () => renewed.add({ sequence: 1, id: Uint8Array.of(9), resetToken: token(1), retirePrior: 0 }),
    QuicError,
  )
})
