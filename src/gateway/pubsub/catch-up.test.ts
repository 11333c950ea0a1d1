import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Upstream } from '../../upstreams/service.ts'
import { createCatchUp, type Missed } from './catch-up.ts'

type Ask = Upstream['ask']
type Outcome = Awaited<ReturnType<Ask>>

/** Asks wait until they are answered with an account at a slot. */
function setUp() {
  const asked: { body: string; respond: (slot: number) => void }[] = []
  const ask = ((call: { body: Buffer | string }) =>
    new Promise<Outcome>((resolve) => {
      const respond = (slot: number) => {
        const result = `{"context":{"slot":${slot}},"value":{"lamports":1}}`
        resolve({ kind: 'responded', body: Buffer.from(`{"jsonrpc":"2.0","result":${result},"id":1}`) } as Outcome)
      }
      asked.push({ body: String(call.body), respond })
    })) as Ask
  const found: Missed[] = []
  const catchUp = createCatchUp()
  const find = (subscription: object, params = '["k"]', isWanted = () => true) =>
    catchUp.find(subscription, {
      upstream: { ask },
      kind: 'account',
      params,
      isWanted,
      found: (one) => found.push(one),
    })
  return { asked, found, find }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('so many are asked about at once, and each subscription waits at most once', async () => {
  const { asked, found, find } = setUp()
  const subscriptions = Array.from({ length: 40 }, () => ({}))
  for (let losses = 0; losses < 5; losses++) for (const subscription of subscriptions) find(subscription)
  assert.equal(asked.length, 32)
  // Those under way were lost again meanwhile, so each of the 40 waits once more.
  for (let responded = 0; responded < 72; responded++) {
    await turn()
    asked[responded]?.respond(responded)
  }
  await turn()
  assert.deepEqual([asked.length, found.length], [72, 72])
})

test('what is no longer wanted is not asked about, and not delivered', async () => {
  const { asked, found, find } = setUp()
  find({}, '["k"]', () => false)
  assert.equal(asked.length, 0)
  let isWanted = true
  find({}, '["k"]', () => isWanted)
  isWanted = false
  asked[0]?.respond(1)
  await turn()
  assert.equal(found.length, 0)
})

test('params that nodes may read differently, or that parsing changes, are not asked about', () => {
  const { asked, find } = setUp()
  find({}, '["k",{"commitment":"processed","commitment":"finalized"}]')
  find({}, '["k",{"dataSlice":{"length":18446744073709551615,"offset":0}}]')
  find({}, '["k",{"dataSlice":{"length":1.0,"offset":0}}]')
  find({}, '{"k":1}')
  assert.equal(asked.length, 0)
  find({}, '["k",{"commitment":"confirmed"}]')
  assert.match(asked[0]?.body ?? '', /"params":\["k",\{"commitment":"confirmed"\}\]/)
})
