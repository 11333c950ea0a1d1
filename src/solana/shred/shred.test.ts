import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, randomBytesOf, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { brokenRule, decodeShred } from '../../../test/support/shreds/decoder.ts'
import { createSigningKey } from '../crypto/ed25519.ts'
import { makeShreds } from './make.ts'
import {
  isDataComplete,
  isLastInSlot,
  parseShred,
  payloadOf,
  positionInFecSet,
  type Shred,
  type ShredFault,
} from './shred.ts'

const filled = (byte: number, length = 32): Uint8Array => new Uint8Array(length).fill(byte)

/** A block of two FEC sets; the second is resigned. */
function sampleBlock(slot = 500) {
  return makeShreds({
    slot,
    parentSlot: Math.max(slot - 3, 0),
    version: 27350,
    batches: [filled(7, 30_816 + 5000)],
    chainedRoot: filled(9),
    leader: createSigningKey(filled(1)),
    referenceTick: 11,
  }).sets
}

const [plain, resigned] = sampleBlock() as [ReturnType<typeof sampleBlock>[0], ReturnType<typeof sampleBlock>[0]]
const samples = {
  data: plain.data[4] as Uint8Array,
  lastData: plain.data[31] as Uint8Array,
  code: plain.code[4] as Uint8Array,
  resignedData: resigned.data[4] as Uint8Array,
  lastResignedData: resigned.data[31] as Uint8Array,
  resignedCode: resigned.code[4] as Uint8Array,
}

function parsed(packet: Uint8Array): Shred {
  const result = parseShred(packet)
  assert.ok(result.ok, result.ok ? '' : result.reason)
  return result.shred
}

test('parses every variant like the second decoder', () => {
  assert.deepEqual(
    Object.values(samples).map((packet) => packet[64]),
    [0x96, 0x96, 0x66, 0xb6, 0xb6, 0x76],
  )
  for (const packet of Object.values(samples)) assertAgrees(parsed(packet), packet)
})

function assertAgrees(shred: Shred, packet: Uint8Array): void {
  const decoded = decodeShred(packet)
  assert.equal(shred.kind, decoded.kind)
  assert.equal(shred.layout.resigned, decoded.resigned)
  assert.equal(BigInt(shred.slot), decoded.slot)
  assert.deepEqual([shred.index, shred.version, shred.fecSetIndex], [decoded.index, decoded.version, decoded.fec])
  assert.equal(Buffer.compare(shred.bytes, decoded.packet), 0)
  if (shred.kind === 'data') {
    assert.deepEqual([shred.parentOffset, shred.flags, shred.size], [decoded.parentOffset, decoded.flags, decoded.size])
    assert.equal(Buffer.compare(payloadOf(shred), decoded.packet.subarray(88, decoded.size)), 0)
    assert.equal(positionInFecSet(shred), decoded.index - decoded.fec)
  } else {
    assert.equal(shred.position, decoded.position)
    assert.equal(positionInFecSet(shred), 32 + decoded.position)
  }
}

test('reads the flags of the samples', () => {
  const flagsOf = (packet: Uint8Array) => {
    const shred = parsed(packet)
    assert.ok(shred.kind === 'data')
    return [isDataComplete(shred), isLastInSlot(shred), shred.flags & 0x3f]
  }
  assert.deepEqual(flagsOf(samples.data), [false, false, 11])
  assert.deepEqual(flagsOf(samples.lastData), [false, false, 11])
  assert.deepEqual(flagsOf(samples.lastResignedData), [true, true, 11])
})

/** A sample with overwritten bytes. */
function broken(sample: keyof typeof samples, ...writes: [at: number, ...bytes: number[]][]): Uint8Array {
  const packet = Uint8Array.from(samples[sample])
  for (const [at, ...bytes] of writes) packet.set(bytes, at)
  return packet
}
const index = (value: number): [number, ...number[]] => [
  73,
  value & 255,
  (value >> 8) & 255,
  (value >> 16) & 255,
  value >>> 24,
]
const fecSetIndex = (value: number): [number, ...number[]] => [
  79,
  value & 255,
  (value >> 8) & 255,
  (value >> 16) & 255,
  value >>> 24,
]

const rules: [string, ShredFault | 'ok', Uint8Array][] = [
  ['an empty packet', 'too-short', new Uint8Array()],
  ['1202 bytes of data', 'too-short', samples.data.subarray(0, 1202)],
  ['1203 bytes of data', 'ok', samples.data],
  ['1227 bytes of code', 'too-short', samples.code.subarray(0, 1227)],
  ['a nonce after the shred', 'ok', Uint8Array.of(...samples.data, 1, 2, 3, 4)],
  ['legacy data', 'variant', broken('data', [64, 0xa5])],
  ['legacy code', 'variant', broken('code', [64, 0x5a])],
  ['unchained data', 'variant', broken('data', [64, 0x86])],
  ['unchained code', 'variant', broken('code', [64, 0x46])],
  ['a proof of 5', 'proof-length', broken('data', [64, 0x95])],
  ['a proof of 7', 'proof-length', broken('resignedCode', [64, 0x77])],
  ['slot 2^53 - 1', 'ok', broken('data', [65, 255, 255, 255, 255, 255, 255, 31, 0])],
  ['slot 2^53', 'slot', broken('data', [65, 0, 0, 0, 0, 0, 0, 32, 0])],
  ['slot 2^64 - 1', 'slot', broken('data', [65, 255, 255, 255, 255, 255, 255, 255, 255])],
  ['the last index of a slot', 'ok', broken('data', index(32_767), fecSetIndex(32_736))],
  ['an index past the slot', 'index-too-large', broken('data', index(32_768), fecSetIndex(32_768))],
  ['an index of 2^32 - 1', 'index-too-large', broken('data', index(0xffffffff))],
  ['a set that is no multiple of 32', 'set-index-unaligned', broken('data', fecSetIndex(1))],
  ['a set past the slot', 'set-index-too-large', broken('data', fecSetIndex(32_768))],
  ['the first index of a set', 'ok', broken('data', index(0))],
  ['an index before its set', 'index-outside-set', broken('data', index(31), fecSetIndex(32))],
  ['an index after its set', 'index-outside-set', broken('data', index(32))],
  ['last in slot without complete', 'flags', broken('lastResignedData', [85, 0x80])],
  ['complete inside a set', 'complete-inside-set', broken('data', [85, 0x40])],
  ['last in slot inside a set', 'complete-inside-set', broken('data', [85, 0xc0])],
  ['complete at the end of a set', 'ok', broken('lastData', [85, 0x40])],
  ['a parent at slot 0', 'ok', broken('data', [65, 3, 0])],
  ['a parent before slot 0', 'parent-before-genesis', broken('data', [65, 2, 0])],
  ['a slot that is its own parent', 'parent-is-self', broken('data', [83, 0])],
  ['slot 0 with itself as parent', 'ok', broken('data', [65, 0, 0], [83, 0])],
  ['size of the headers alone', 'ok', broken('data', [86, 88, 0])],
  ['size below the headers', 'size', broken('data', [86, 87, 0])],
  ['the largest size', 'ok', broken('data', [86, 1051 & 255, 1051 >> 8])],
  ['size past the payload', 'size', broken('data', [86, 1052 & 255, 1052 >> 8])],
  ['the largest resigned size', 'ok', broken('resignedData', [86, 987 & 255, 987 >> 8])],
  ['resigned size past the payload', 'size', broken('resignedData', [86, 988 & 255, 988 >> 8])],
  ['31 data shreds', 'set-size', broken('code', [83, 31])],
  ['33 code shreds', 'set-size', broken('code', [85, 33])],
  ['position 32', 'position', broken('code', [87, 32])],
  ['position past the index', 'position', broken('code', [87, 5])],
  ['position of another shred', 'position', broken('code', [87, 3])],
]

for (const [name, expected, packet] of rules) {
  test(`rule: ${name}: ${expected}`, () => {
    const result = parseShred(packet)
    assert.equal(result.ok ? 'ok' : result.reason, expected)
    assert.equal(brokenRule(packet) === undefined, expected === 'ok')
  })
}

test('a slot of 200 ms has half the indexes', () => {
  const reason = (packet: Uint8Array) => {
    const result = parseShred(packet, 16_384)
    return result.ok ? 'ok' : result.reason
  }
  assert.equal(reason(broken('data', index(16_383), fecSetIndex(16_352))), 'ok')
  assert.equal(reason(broken('data', index(16_384), fecSetIndex(16_384))), 'index-too-large')
})

test('reads a Buffer with an offset', () => {
  const packet = Buffer.concat([Buffer.alloc(7), samples.code, Buffer.alloc(9)]).subarray(7)
  assert.deepEqual(parsed(packet), parsed(samples.code))
})

const FAULT_OF_RULE: Record<string, ShredFault> = {
  length: 'too-short',
  slot: 'slot',
  2: 'index-too-large',
  3: 'index-outside-set',
  4: 'set-index-unaligned',
  5: 'set-index-too-large',
  6: 'variant',
  7: 'proof-length',
  8: 'flags',
  9: 'complete-inside-set',
  10: 'parent-before-genesis',
  11: 'parent-is-self',
  12: 'size',
  13: 'position',
  14: 'position',
  15: 'set-size',
  16: 'position',
}

test('mutated packets never throw, and both decoders agree on each', (t) => {
  const random = createRandom(seedOf(t))
  const packets = Object.values(samples)
  const seen = new Set<string>()
  const runs = repeatsOf({ short: 30_000, full: 1_000_000 })
  for (let run = 0; run < runs; run++) {
    const packet = Uint8Array.from(packets[random(packets.length)] as Uint8Array)
    for (let left = 1 + random(3); left > 0; left--) {
      packet[64 + random(25)] = random(3) === 0 ? random(256) : random(2) === 0 ? random(4) * 32 : 0
    }
    const cut = random(8) === 0 ? packet.subarray(0, random(packet.length + 1)) : packet
    const result = parseShred(cut)
    const rule = brokenRule(cut)
    seen.add(result.ok ? 'ok' : result.reason)
    assert.equal(result.ok ? undefined : result.reason, rule === undefined ? undefined : FAULT_OF_RULE[rule])
    if (result.ok && random(10) === 0) assertAgrees(result.shred, cut)
  }
  assert.equal(seen.size, new Set(Object.values(FAULT_OF_RULE)).size + 1, [...seen].join())
})

test('refuses packets of random bytes', (t) => {
  const random = createRandom(seedOf(t))
  for (let run = 0; run < 500; run++) assert.equal(parseShred(randomBytesOf(random, random(1300))).ok, false)
})
