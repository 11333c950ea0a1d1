import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { EXECUTION_RPC_METHODS } from '../contract/execution-routes.ts'
import { DEFAULT_KINDS, RAW_EVENTS, type RawEventName } from '../contract/stream-events.ts'
import { seedFor } from '../core/test-seed.ts'
import { BlockStore } from './rpc/block-store.ts'
import { responseBody, testMethods } from './rpc/test-rpc.ts'
import { checkCursor } from './stream/resume-buffer.ts'
import { parseSubscribeMessage, parseSubscribeQuery } from './stream/subscription.ts'

/** Random input: every response follows the contract, and nothing throws. */

const RULES = { itemsMax: 8, blocked: new Set<RawEventName>(['StorageAccess']) }
const item = fc.oneof(fc.constantFrom(...DEFAULT_KINDS, ...RAW_EVENTS), fc.string({ maxLength: 12 }), fc.jsonValue())
const filter = fc.record(
  {
    events: fc.oneof(fc.array(item, { maxLength: 3 }), fc.jsonValue()),
    txn_index: fc.oneof(fc.record({ min: fc.integer(), max: fc.integer() }, { requiredKeys: [] }), fc.jsonValue()),
    address: fc.oneof(fc.constantFrom(`0x${'A'.repeat(40)}`, '0x', null), fc.jsonValue()),
    topics: fc.oneof(fc.array(fc.constantFrom(`0x${'1'.repeat(64)}`, null, 7)), fc.jsonValue()),
  },
  { requiredKeys: [] },
)
const extended = fc.record(
  {
    events: fc.array(item, { maxLength: 12 }),
    filters: fc.oneof(fc.array(filter, { maxLength: 20 }), fc.jsonValue()),
    correlate: fc.oneof(fc.boolean(), fc.jsonValue()),
    min_stage: fc.oneof(fc.constantFrom('Proposed', 'Voted'), fc.jsonValue()),
  },
  { requiredKeys: ['events'] },
)
const message = fc.oneof(
  fc.string(),
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.oneof(fc.array(item), extended).map((subscribe) => JSON.stringify({ subscribe })),
)

test('any subscribe message is accepted or refused with a code and a message', () => {
  let taken = 0
  fc.assert(
    fc.property(message, (text) => {
      for (const parsed of [parseSubscribeMessage(text, RULES), parseSubscribeQuery(text, RULES)]) {
        if (!parsed.ok) {
          assert(['empty_subscribe', 'subscribe_limit', 'invalid_subscribe'].includes(parsed.error.code))
          assert(parsed.error.message.length > 0 && parsed.error.message.length < 1000)
          continue
        }
        taken += 1
        const { events, filters } = parsed.subscription
        assert(events.length >= 1 && events.length <= RULES.itemsMax && filters.length <= 16)
        assert(!events.includes('StorageAccess') && new Set(events).size === events.length)
        // What was accepted is accepted again as it is echoed.
        const echoed = parseSubscribeMessage(JSON.stringify({ subscribe: parsed.subscription }), RULES)
        assert.deepEqual(echoed, parsed)
      }
    }),
    seedFor('subscribe messages', 1000),
  )
  assert(taken > 0, 'some were taken')
})

test('any cursor is accepted or refused with a reason', () => {
  const window = fc
    .tuple(fc.integer({ min: 1, max: 2 ** 50 }), fc.integer({ min: 0, max: 100_000 }))
    .map(([oldestSeq, more]) => ({ oldestSeq, newestSeq: oldestSeq + more, upcomingSeq: oldestSeq + more + 1 }))
  const near = fc.tuple(window, fc.integer({ min: -3, max: 100_003 }))
  fc.assert(
    fc.property(near, fc.string({ maxLength: 20 }), ([range, offset], text) => {
      const seq = range.oldestSeq + offset
      const cursor = checkCursor(String(seq), range)
      const isInside = seq >= range.oldestSeq - 1 && seq <= range.newestSeq
      assert.equal(cursor.ok, isInside && seq >= 0)
      const odd = checkCursor(text, range)
      if (!/^\d+$/.test(text)) assert.deepEqual(odd, { ok: false, reason: 'invalid' })
    }),
    seedFor('cursors', 500),
  )
})

test('any JSON-RPC body gets a response, never an internal error', () => {
  const blocks = new BlockStore({ blocksMax: 4, bytesMax: 2 ** 20 }, { stageOf: () => undefined })
  const methods = testMethods(blocks)
  const onFault = (error: unknown): void => assert.fail(String(error))
  const param = fc.oneof(
    fc.constantFrom('latest', 'safe', '0x0', '0x1', `0x${'f'.repeat(64)}`, true),
    fc.jsonValue(),
    fc.record({ fromBlock: fc.jsonValue(), address: fc.jsonValue(), topics: fc.jsonValue() }, { requiredKeys: [] }),
  )
  const call = fc.record(
    {
      jsonrpc: fc.constantFrom('2.0', '1.0'),
      method: fc.oneof(fc.constantFrom(...EXECUTION_RPC_METHODS, '__proto__', 'toString'), fc.string()),
      params: fc.oneof(fc.array(param, { maxLength: 3 }), fc.jsonValue()),
      id: fc.oneof(fc.integer(), fc.string(), fc.jsonValue()),
    },
    { requiredKeys: [] },
  )
  const body = fc.oneof(
    fc.string(),
    fc.oneof(call, fc.array(call), fc.jsonValue()).map((value) => JSON.stringify(value)),
  )
  fc.assert(
    fc.property(body, (text) => {
      const response = responseBody(Buffer.from(text), { methods, onFault })
      if (response.status === 204) return assert.equal(response.text, '')
      const parsed = JSON.parse(response.text) as Record<string, unknown> | Record<string, unknown>[]
      for (const one of Array.isArray(parsed) ? parsed : [parsed]) {
        assert.equal(one['jsonrpc'], '2.0')
        assert.notEqual('result' in one, 'error' in one)
        assert('id' in one)
      }
    }),
    seedFor('JSON-RPC bodies', 1000),
  )
})
