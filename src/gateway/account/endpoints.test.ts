import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createAccountEndpoints, PAGES_PER_SECOND } from './endpoints.ts'

function setUp() {
  const clock = createManualClock()
  const refused: string[] = []
  const endpoints = createAccountEndpoints({
    access: { issueTicket: () => ({ ticket: 'wst_x', expiresAtMs: 0 }) } as never,
    connections: {} as never,
    meter: { refused: (limit) => void refused.push(limit) },
    clock,
  })
  /** Posts a body of this size to `/v1/ws-ticket` and returns the status. */
  const post = async (subscription: string, bodyBytes = 0) => {
    const request = { body: Buffer.alloc(bodyBytes), requestId: 'r', query: '', accept: undefined }
    const response = await endpoints
      .at('/v1/ws-ticket')
      ?.respond({ subscription: { id: subscription } } as never, request)
    return response?.status
  }
  return { clock, post, refused }
}

/** A body that costs as much as this many requests, its own included. */
const bytesOf = (pages: number) => (pages - 1) * 16 * 1024

test('limits account requests by rate, for each subscription', async () => {
  const { clock, post, refused } = setUp()
  for (let at = 0; at < 10 * PAGES_PER_SECOND; at++) assert.equal(await post('a'), 200)
  assert.equal(await post('a'), 429)
  assert.equal(await post('b'), 200)
  clock.advance(1000)
  for (let at = 0; at < PAGES_PER_SECOND; at++) assert.equal(await post('a'), 200)
  assert.equal(await post('a'), 429)
  assert.deepEqual(refused, ['pagesPerSecond', 'pagesPerSecond'])
})

test('a subscription over its rate stays over it while 10,000 others make requests', async () => {
  const { clock, post } = setUp()
  for (let at = 0; at <= 10 * PAGES_PER_SECOND; at++) await post('greedy')
  for (let at = 0; at < 9999; at++) await post(`other-${at}`)
  clock.advance(100)
  await post('one more')
  for (let at = 0; at < 2; at++) await post('greedy')
  assert.equal(await post('greedy'), 429)
})

test('a larger body takes more of the rate, and one beyond the burst is always refused', async () => {
  const { post } = setUp()
  assert.equal(await post('b', bytesOf(10 * PAGES_PER_SECOND + 1)), 429)
  assert.equal(await post('a', bytesOf(9 * PAGES_PER_SECOND)), 200)
  assert.equal(await post('a', bytesOf(2 * PAGES_PER_SECOND)), 429)
  assert.equal(await post('a', bytesOf(PAGES_PER_SECOND)), 200)
})
