import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createToken } from '../../src/access/token.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { callGateway, onBusyMachine, percentile } from '../faults/gateway-rig.ts'
import { rawPost } from '../support/gateway/raw-post.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { isFull, seedOf } from '../support/process/property.ts'

const GUESSES = isFull ? 10_000 : 600
/** Concurrent guesses; from the 21st on each response is delayed by a second. */
const AT_ONCE = isFull ? 500 : 200
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance"}'

test(`T1: ${GUESSES} guesses find no token, are delayed after the twentieth, and do not slow down the owner of a token`, async (t) => {
  const random = createSeededRandom(seedOf(t))
  await using node = await startFakeNode()
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }])
  const ask = () => callGateway(gateway.url, gateway.token, { method: 'getBalance' })
  const measure = async (rounds: number) => {
    const responses = []
    for (let at = 0; at < rounds; at++) responses.push(await ask())
    assert.ok(responses.every(({ status }) => status === 200))
    return percentile(
      responses.map(({ ms }) => ms),
      0.5,
    )
  }
  await measure(50)
  const quietMs = await measure(100)
  const before = node.calls.filter(({ method }) => method === 'getBalance').length

  const statuses = new Map<number, number>()
  let late = 0
  let left = GUESSES
  const guesser = async () => {
    while (left > 0) {
      left -= 1
      const fromMs = performance.now()
      // Every guess is well formed with a valid checksum, the most expensive case.
      const { status, head } = await rawPost(gateway.url, createToken(random).secret, CALL).response
      const tookMs = performance.now() - fromMs
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      // Only a delayed response closes its connection; on a busy machine others may be slow too.
      if (!/^connection: close/im.test(head)) continue
      late += 1
      assert.ok(tookMs >= 950, `${tookMs} ms`)
    }
  }
  const guessers = Promise.all(Array.from({ length: AT_ONCE }, guesser))
  let besideMs = 0
  let rounds = 0
  // From the same address, during the guesses.
  while (left > 0) {
    besideMs = Math.max(besideMs, await measure(20))
    rounds += 20
  }
  await guessers
  assert.deepEqual([...statuses], [[401, GUESSES]])
  t.diagnostic(
    `${late} of ${GUESSES} responses delayed; a valid client: median ${quietMs.toFixed(1)} ms before, at most ${besideMs.toFixed(1)} ms beside`,
  )
  assert.ok(late >= GUESSES - 20 - AT_ONCE, `${late} were delayed`)
  assert.ok(besideMs <= quietMs + onBusyMachine(50, 400), `${besideMs} ms beside, ${quietMs} ms before`)
  const reached = node.calls.filter(({ method }) => method === 'getBalance').length - before
  assert.equal(reached, rounds, 'no guess reached the node')
})
