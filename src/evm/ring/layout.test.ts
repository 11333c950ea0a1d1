import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  checkRingHeader,
  descriptorOffset,
  encodeRingHeader,
  HEADER,
  payloadSectionOffset,
  readControl,
  ringFileBytes,
  SCHEMA_HASH,
} from './layout.ts'

const SMALLEST = { capacity: 2 ** 16, payloadBytes: 2 ** 27, contextBytes: 0 }

/** The default geometry of a node.  */
const DEFAULT_GEOMETRY = { capacity: 2 ** 21, payloadBytes: 2 ** 29, contextBytes: 0 }

describe('ring header', () => {
  test('accepts a new header and returns its geometry', () => {
    assert.deepEqual(checkRingHeader(encodeRingHeader(DEFAULT_GEOMETRY)), { ok: true, geometry: DEFAULT_GEOMETRY })
    assert.deepEqual(readControl(encodeRingHeader(SMALLEST)), { lastSeqno: 0, nextPayloadByte: 0, windowStart: 0 })
  })

  test('has the bytes of the format', () => {
    const header = Buffer.from(encodeRingHeader(SMALLEST))
    assert.equal(header.length, 192)
    assert.equal(header.toString('latin1', 0, 6), 'RING01')
    assert.equal(header.readUInt16LE(6), 2)
    assert.equal(header.toString('hex', 8, 40), SCHEMA_HASH)
    assert.equal(header.readBigUInt64LE(40), 65_536n)
    assert.equal(header.readBigUInt64LE(48), 134_217_728n)
  })

  const refusals: [string, (header: Buffer) => void, string, RegExp][] = [
    ['other files', (header) => header.write('ELF', 0), 'not-a-ring', /RING01/],
    ['another version', (header) => header.write('RING02', 0), 'version', /RING02/],
    ['another content', (header) => header.writeUInt16LE(1, 6), 'content-type', /content type 1/],
    ['an unknown schema', (header) => header.fill(0xab, 8, 40), 'schema', /unknown schema hash (ab){32};/],
    [
      'a retired schema',
      (header) => header.write('ddc58d9afcabb6ae55d525d281ef9fd2f9b4dbceb27ac118067cdafd70e9016b', 8, 'hex'),
      'schema',
      /retired schema hash ddc58d9a/,
    ],
    ['a capacity that is no power of two', (header) => header.writeBigUInt64LE(65_537n, 40), 'geometry', /65537/],
    ['a capacity below the minimum', (header) => header.writeBigUInt64LE(32_768n, 40), 'geometry', /32768/],
    ['a capacity above the maximum', (header) => header.writeBigUInt64LE(2n ** 33n, 40), 'geometry', /8589934592/],
    ['no capacity', (header) => header.writeBigUInt64LE(0n, 40), 'geometry', /capacity of 0/],
    ['a payload buffer below the minimum', (header) => header.writeBigUInt64LE(2n ** 26n, 48), 'geometry', /67108864/],
    ['a payload buffer above the maximum', (header) => header.writeBigUInt64LE(2n ** 41n, 48), 'geometry', /payload/],
  ]
  for (const [name, spoil, reason, message] of refusals) {
    test(`refuses ${name}`, () => {
      const header = Buffer.from(encodeRingHeader(SMALLEST))
      spoil(header)
      const check = checkRingHeader(header)
      assert(!check.ok)
      assert.equal(check.reason, reason)
      assert.match(check.message, message)
    })
  }

  test('refuses a file that ends within the header', () => {
    const check = checkRingHeader(encodeRingHeader(SMALLEST).subarray(0, 191))
    assert(!check.ok)
    assert.equal(check.reason, 'not-a-ring')
  })

  test('reads the control registers at their offsets', () => {
    const header = Buffer.from(encodeRingHeader(SMALLEST))
    header.writeBigUInt64LE(6_597n, HEADER.lastSeqno)
    header.writeBigUInt64LE(2n ** 40n + 5n, HEADER.nextPayloadByte)
    header.writeBigUInt64LE(2n ** 33n, HEADER.windowStart)
    assert.deepEqual(readControl(header), { lastSeqno: 6_597, nextPayloadByte: 2 ** 40 + 5, windowStart: 2 ** 33 })
  })

  test('refuses control registers that are too large to count with', () => {
    for (const at of [HEADER.lastSeqno, HEADER.nextPayloadByte, HEADER.windowStart]) {
      const header = Buffer.from(encodeRingHeader(SMALLEST))
      header.writeBigUInt64LE(2n ** 52n, at)
      assert.doesNotThrow(() => readControl(header))
      header.writeBigUInt64LE(2n ** 53n, at)
      assert.throws(() => readControl(header), /the ring is broken: its register \w+ is beyond 2\^52/)
    }
  })
})

test('sections have the offsets of the format', () => {
  assert.equal(ringFileBytes(SMALLEST), 140_509_184)
  assert.equal(ringFileBytes(DEFAULT_GEOMETRY), 673_185_792)
  assert.equal(descriptorOffset(SMALLEST, 1), 2_097_152)
  assert.equal(descriptorOffset(SMALLEST, 65_536), 2_097_152 + 65_535 * 64)
  assert.equal(descriptorOffset(SMALLEST, 65_537), 2_097_152)
  assert.equal(payloadSectionOffset(SMALLEST), 2_097_152 + 65_536 * 64)
})
