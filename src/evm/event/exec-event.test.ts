import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { createSmallRing, makeEvent, openReader } from '../ring/test-ring.ts'
import { decodeEvent, eventPayloadJson } from './exec-event.ts'
import { decodePayload, encodePayload, type Layout, type PayloadOf } from './payload-layout.ts'
import { PAYLOADS } from './payloads.ts'
import { EVENT, type EventName, eventName } from './type.ts'

/** Section 10 of the format document. */
const FORMAT: Record<EventName, [code: number, bytes: number]> = {
  RECORD_ERROR: [1, 16],
  BLOCK_START: [2, 528],
  BLOCK_REJECT: [3, 4],
  BLOCK_PERF_EVM_ENTER: [4, 0],
  BLOCK_PERF_EVM_EXIT: [5, 0],
  BLOCK_END: [6, 360],
  BLOCK_QC: [7, 56],
  BLOCK_FINALIZED: [8, 40],
  BLOCK_VERIFIED: [9, 8],
  TXN_HEADER_START: [10, 352],
  TXN_ACCESS_LIST_ENTRY: [11, 28],
  TXN_AUTH_LIST_ENTRY: [12, 168],
  TXN_HEADER_END: [13, 0],
  TXN_REJECT: [14, 4],
  TXN_PERF_EVM_ENTER: [15, 0],
  TXN_PERF_EVM_EXIT: [16, 0],
  TXN_EVM_OUTPUT: [17, 24],
  TXN_LOG: [18, 32],
  TXN_CALL_FRAME: [19, 128],
  TXN_END: [20, 0],
  ACCOUNT_ACCESS_LIST_HEADER: [21, 8],
  ACCOUNT_ACCESS: [22, 152],
  STORAGE_ACCESS: [23, 124],
  EVM_ERROR: [24, 16],
}

const WIDTHS: Record<string, number> = {
  bool: 1,
  u8: 1,
  u16: 2,
  u32: 4,
  i32: 4,
  u64: 8,
  i64: 8,
  u128: 16,
  u256: 32,
  address: 20,
}

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((value) => `0x${Buffer.from(value).toString('hex')}`)

function valueOf(kind: string): fc.Arbitrary<unknown> {
  const bits = (WIDTHS[kind] ?? 0) * 8
  if (kind === 'bool') return fc.boolean()
  if (kind === 'i32') return fc.integer()
  if (kind === 'i64') return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
  if (kind === 'address') return hex(20)
  if (kind.startsWith('bytes')) return hex(Number(kind.slice(5)))
  return bits > 32 ? fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n }) : fc.nat({ max: 2 ** bits - 1 })
}

function payloadOf({ fields, tail }: Layout): fc.Arbitrary<Record<string, unknown>> {
  const parts: Record<string, fc.Arbitrary<unknown>> = {}
  for (const [name, [kind]] of Object.entries(fields)) parts[name] = valueOf(kind)
  for (const [name, [kind]] of Object.entries(tail)) {
    parts[name] = kind === 'bytes' ? fc.nat({ max: 40 }).chain(hex) : fc.array(hex(32), { maxLength: 4 })
  }
  return fc.record(parts, { noNullPrototype: true }).map((payload) => {
    for (const [name, [kind, countField]] of Object.entries(tail)) {
      const value = payload[name] as string | string[]
      const count = kind === 'bytes' ? (value.length - 2) / 2 : value.length
      payload[countField] = typeof payload[countField] === 'bigint' ? BigInt(count) : count
    }
    return payload
  })
}

describe('payloads', () => {
  for (const [name, [code, bytes]] of Object.entries(FORMAT) as [EventName, [number, number]][]) {
    test(`${name} has its code and size, and its fields do not overlap`, () => {
      const shape: Layout = PAYLOADS[name]
      assert.deepEqual([EVENT[name], eventName(code), shape.bytes], [code, name, bytes])
      let end = 0
      for (const [kind, offset] of Object.values(shape.fields).toSorted((a, b) => a[1] - b[1])) {
        assert(offset >= end, `${kind} at ${offset}`)
        end = offset + (WIDTHS[kind] ?? Number(kind.slice(5)))
      }
      assert(end <= bytes)
    })

    test(`${name} decodes to what was encoded`, () => {
      const shape: Layout = PAYLOADS[name]
      fc.assert(
        fc.property(payloadOf(shape), (payload) => {
          const encoded = encodePayload(shape, payload as Partial<PayloadOf<Layout>>)
          assert.deepEqual(decodePayload(shape, encoded), payload)
          const longer = Uint8Array.of(...encoded, 0)
          assert.equal(decodePayload(shape, longer), undefined, 'one byte more is not this payload')
          if (encoded.length > 0) assert.equal(decodePayload(shape, encoded.subarray(0, -1)), undefined)
        }),
        seedFor(name, 30),
      )
    })
  }

  test('decoding random bytes returns a payload or undefined and does not throw', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(PAYLOADS)),
        fc.uint8Array({ maxLength: 700 }),
        (shape: Layout, bytes) => {
          decodePayload(shape, bytes)
        },
      ),
      seedFor('payload bytes', 2000),
    )
  })

  test('JSON has 256-bit numbers as hex and counters as numbers', () => {
    const { source, writer } = createSmallRing()
    const payload = encodePayload(PAYLOADS.TXN_EVM_OUTPUT, { status: true, gas_used: 21_000n })
    writer.record(makeEvent(1, 0, { type: EVENT.TXN_EVM_OUTPUT, payload }))
    const auth = encodePayload(PAYLOADS.TXN_AUTH_LIST_ENTRY, { chain_id: 143n, nonce: 2n ** 64n - 1n })
    writer.record(makeEvent(1, 0, { type: EVENT.TXN_AUTH_LIST_ENTRY, payload: auth }))
    const reader = openReader(source)
    reader.poll(0)
    const [output, entry] = [0, 1].map((at) => {
      const decoded = decodeEvent(reader.batch, at)
      assert(decoded.ok)
      return eventPayloadJson(decoded.event)
    })
    assert.deepEqual(output, { status: true, log_count: 0, gas_used: 21_000, call_frame_count: 0 })
    assert.deepEqual([entry?.['chain_id'], entry?.['nonce']], ['0x8f', '18446744073709551615'])
    JSON.stringify([output, entry])
  })
})

test('integers above 2^53 - 1 are strings in JSON, also those a double can represent', () => {
  const table: [value: bigint, json: number | string][] = [
    [2n ** 53n - 1n, 9_007_199_254_740_991],
    [2n ** 53n, '9007199254740992'],
    [2n ** 53n + 1n, '9007199254740993'],
    [2n ** 53n + 2n, '9007199254740994'],
    [2n ** 63n, '9223372036854775808'],
    [2n ** 64n - 1n, '18446744073709551615'],
  ]
  for (const [value, json] of table) {
    const { source, writer } = createSmallRing()
    const payload = encodePayload(PAYLOADS.BLOCK_QC, { block_number: value, round: value })
    writer.record(makeEvent(1, 0, { type: EVENT.BLOCK_QC, payload }))
    const reader = openReader(source)
    reader.poll(0)
    const decoded = decodeEvent(reader.batch, 0)
    assert(decoded.ok)
    const shown = eventPayloadJson(decoded.event)
    assert.deepEqual([shown['block_number'], shown['round']], [json, json])
  }
})

describe('events that cannot be decoded', () => {
  test('are reported as unknown-type or malformed', () => {
    const { source, writer } = createSmallRing()
    writer.record(makeEvent(1, 8, { type: 25 }))
    writer.record(makeEvent(2, 527, { type: EVENT.BLOCK_START }))
    const reader = openReader(source)
    reader.poll(0)
    assert.deepEqual(decodeEvent(reader.batch, 0), { ok: false, seqno: 1, code: 25, reason: 'unknown-type' })
    assert.deepEqual(decodeEvent(reader.batch, 1), {
      ok: false,
      seqno: 2,
      code: EVENT.BLOCK_START,
      reason: 'malformed',
    })
  })
})
