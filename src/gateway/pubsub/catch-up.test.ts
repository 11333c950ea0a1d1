import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Upstream } from '../../upstreams/started-pool.ts'
import { createCatchUp, type Missed } from './catch-up.ts'

type ForwardAsync = Upstream['forwardAsync']
type Response = Awaited<ReturnType<ForwardAsync>>

/** Forwarded calls wait until `respond` gives an account at a slot. */
function setUp(threads?: number) {
  const forwarded: { body: string; respond: (slot: number) => void }[] = []
  const forwardAsync = ((request: { body: Buffer | string }) =>
    new Promise<Response>((resolve) => {
      const respond = (slot: number) => {
        const result = `{"context":{"slot":${slot}},"value":{"lamports":1}}`
        resolve({ kind: 'responded', body: Buffer.from(`{"jsonrpc":"2.0","result":${result},"id":1}`) } as Response)
      }
      forwarded.push({ body: String(request.body), respond })
    })) as ForwardAsync
  const missed: Missed[] = []
  const catchUp = createCatchUp(threads)
  const start = (subscription: object, params = '["k"]', isNeeded = () => true) =>
    catchUp.start(subscription, {
      upstream: { forwardAsync },
      kind: 'account',
      params,
      isNeeded,
      onMissed: (one) => missed.push(one),
    })
  return { forwarded, missed, start }
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('each of several gateway threads runs its share of the 32 reads, and at least one', () => {
  for (const [threads, reads] of [
    [2, 16],
    [5, 6],
    [64, 1],
  ] as const) {
    const { forwarded, start } = setUp(threads)
    for (let at = 0; at < 40; at++) start({})
    assert.equal(forwarded.length, reads)
  }
})

test('runs 32 reads at once and keeps at most one waiting for each subscription', async () => {
  const { forwarded, missed, start } = setUp()
  const subscriptions = Array.from({ length: 40 }, () => ({}))
  for (let losses = 0; losses < 5; losses++) for (const subscription of subscriptions) start(subscription)
  assert.equal(forwarded.length, 32)
  // The 32 running ones were started again too, so each of the 40 waits once more.
  for (let responded = 0; responded < 72; responded++) {
    await nextTurn()
    forwarded[responded]?.respond(responded)
  }
  await nextTurn()
  assert.deepEqual([forwarded.length, missed.length], [72, 72])
})

test('neither reads nor delivers what is no longer needed', async () => {
  const { forwarded, missed, start } = setUp()
  start({}, '["k"]', () => false)
  assert.equal(forwarded.length, 0)
  let isNeeded = true
  start({}, '["k"]', () => isNeeded)
  isNeeded = false
  forwarded[0]?.respond(1)
  await nextTurn()
  assert.equal(missed.length, 0)
})

test('does not read with params that nodes may read differently or that JSON.parse changes', () => {
  const { forwarded, start } = setUp()
  start({}, '["k",{"commitment":"processed","commitment":"finalized"}]')
  start({}, '["k",{"dataSlice":{"length":18446744073709551615,"offset":0}}]')
  start({}, '["k",{"dataSlice":{"length":1.0,"offset":0}}]')
  start({}, '{"k":1}')
  assert.equal(forwarded.length, 0)
  start({}, '["k",{"commitment":"confirmed"}]')
  assert.match(forwarded[0]?.body ?? '', /"params":\["k",\{"commitment":"confirmed"\}\]/)
})

test('a signature is missed when its status has reached the commitment, whichever levels the node skipped', async () => {
  const levels = ['processed', 'confirmed', 'finalized', undefined]
  async function isMissed(commitment: string | undefined, confirmationStatus: string | undefined): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const result = { context: { slot: 9 }, value: [{ slot: 9, err: null, confirmationStatus }] }
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', result, id: 1 }))
    createCatchUp().start(
      {},
      {
        upstream: { forwardAsync: (async () => ({ kind: 'responded', body })) as unknown as ForwardAsync },
        kind: 'signature',
        params: JSON.stringify(commitment === undefined ? ['s'] : ['s', { commitment }]),
        isNeeded: () => true,
        onMissed: ({ isLast, slot }) => resolve(isLast && slot === 9),
      },
    )
    for (let turns = 0; turns < 5; turns++) await nextTurn()
    resolve(false)
    return promise
  }
  const missed = await Promise.all(
    levels.map((commitment) => Promise.all(levels.map((status) => isMissed(commitment, status)))),
  )
  assert.deepEqual(missed, [
    [true, true, true, false],
    [false, true, true, false],
    [false, false, true, false],
    // Without a commitment a subscription is for finalized.
    [false, false, true, false],
  ])
  assert.equal(await isMissed('max', 'processed'), false, 'a level that is not known is not guessed')
})
