import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createManualClock } from '../../../core/clock.ts'
import { createSeededRandom } from '../../../core/random.ts'
import { GrpcCode } from '../../../platform/grpc/status.ts'
import type { TimeSlices } from '../../../platform/process/time-slices.ts'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { SubscribeDeshredRequestSchema } from '../../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../../solana/geyser/protobuf.ts'
import { FilterIndex } from './filter-index.ts'
import { FilterUpdates } from './filter-updates.ts'
import { type DeshredRequest, readDeshredRequest } from './request.ts'
import { DecodedStream } from './stream.ts'
import { accountOf, decodedTransaction } from './test-transactions.ts'

const MANY = 20_000
/** Accounts that no transaction has, and at the end the one with this number. */
const accountsWith = (number: number, count = MANY) =>
  Array.from({ length: count }, (_, at) => {
    const key = new Uint8Array(32).fill(9)
    new DataView(key.buffer).setUint32(0, at)
    return encodeBase58(at === count - 1 ? accountOf(number) : key)
  })

function requestOf(accountInclude: string[]): DeshredRequest {
  const init = { deshredTransactions: { f: { accountInclude } } }
  const request = readDeshredRequest(encodeMessage(SubscribeDeshredRequestSchema, init))
  assert.ok(request)
  return request
}

/** Slices of which each is one step, and ends with a turn of the test. */
function setUp() {
  const index = new FilterIndex<DecodedStream>(createSeededRandom(1))
  const waiting: (() => void)[] = []
  const slices: TimeSlices = {
    isSpent: () => true,
    yield: () => new Promise((resolve) => void waiting.push(resolve)),
  }
  const updates = new FilterUpdates(index, slices)
  let turns = 0
  return {
    index,
    updates,
    turns: () => turns,
    open: () =>
      new DecodedStream({
        ...{ pendingBytesMax: 1000, clock: createManualClock(), endsOnLoss: false, onRequest() {}, onLost() {} },
        onEnd: (stream) => updates.end(stream),
      }),
    async turn(): Promise<boolean> {
      await nextTurn()
      const next = waiting.shift()
      next?.()
      turns += 1
      await nextTurn()
      return next !== undefined
    },
    async finish(): Promise<void> {
      for (let left = 10_000; left > 0; left--) if (!(await this.turn())) return
      assert.fail('it does not end')
    },
    matches(number: number): number {
      let count = 0
      index.match(decodedTransaction(0, { fixed: [number] }), () => void (count += 1))
      return count
    },
  }
}

test('a small request is applied at once', () => {
  const { updates, open, matches } = setUp()
  const stream = open()
  updates.apply(stream, requestOf(accountsWith(1, 500)))
  assert.deepEqual([matches(1), matches(2)], [1, 0])
  updates.apply(stream, requestOf(accountsWith(2, 500)))
  assert.deepEqual([matches(1), matches(2)], [0, 1])
})

test('a large request takes many short steps, in later turns; until then the former filters match', async () => {
  const on = setUp()
  const stream = on.open()
  on.updates.apply(stream, requestOf(accountsWith(1, 10)))
  on.updates.apply(stream, requestOf(accountsWith(2)))
  for (let turn = 0; turn < 300; turn++) {
    assert.deepEqual([on.matches(1), on.matches(2)], [1, 0])
    await on.turn()
  }
  await on.finish()
  // Steps of 64 accounts to compile and of 256 to index.
  assert.ok(on.turns() > MANY / 64 + MANY / 256, `${on.turns()} turns`)
  assert.deepEqual([on.matches(1), on.matches(2), on.index.size], [0, 1, 1])
  stream.cancel()
  assert.deepEqual([on.matches(2), on.index.size], [0, 0])
  const before = on.turns()
  await on.finish()
  assert.ok(on.turns() - before > MANY / 256, 'it is removed in steps too')
})

test('the newest request of a stream counts, and a stream that has ended gets none', async () => {
  const on = setUp()
  const [stream, ending] = [on.open(), on.open()]
  on.updates.apply(stream, requestOf(accountsWith(1)))
  for (let turn = 0; turn < MANY / 64 + 20; turn++) await on.turn()
  // It is partly indexed, and is removed again.
  const before = on.turns()
  on.updates.apply(stream, requestOf(accountsWith(2)))
  on.updates.apply(ending, requestOf(accountsWith(3)))
  on.updates.apply(stream, requestOf(accountsWith(4, 10)))
  for (let turn = 0; turn < 10; turn++) await on.turn()
  ending.cancel()
  await on.finish()
  assert.ok(on.turns() - before > MANY / 256)
  assert.deepEqual([1, 2, 3, 4].map(on.matches), [0, 0, 0, 1])
  stream.cancel()
  assert.equal(on.index.size, 0)
})

test('an invalid address ends the stream, also late in a large request', async () => {
  for (const count of [10, MANY]) {
    const on = setUp()
    const stream = on.open()
    const ends: unknown[] = []
    stream.onEnd(({ status }) => void ends.push(status.code, status.message))
    on.updates.apply(stream, requestOf([...accountsWith(1, count), 'not0base58']))
    await on.finish()
    const message =
      'filter refused: deshred_transactions "f" contains "not0base58", which is not an address of 32 bytes in base58'
    assert.deepEqual(ends, [GrpcCode.invalidArgument, message])
  }
})
