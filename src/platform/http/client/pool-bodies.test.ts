import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import type { HttpOutcome } from './exchange.ts'
import { ok, openTestPool, startResponseServer } from './test-pool.ts'

const BODY_BYTES = 50_000

type Reply = Extract<HttpOutcome, { kind: 'reply' }>

/** Each response is filled with the last digit of its number. */
const numbered = () =>
  startResponseServer((socket, { number }) => void socket.write(ok(String(number % 10).repeat(BODY_BYTES))))

function replyOf(outcome: HttpOutcome, digit: string): Reply {
  assert.ok(outcome.kind === 'reply')
  assert.equal(outcome.body.toString(), digit.repeat(BODY_BYTES))
  return outcome
}

describe('memory of response bodies', () => {
  it('is used for the next body once it is released, and not before', async () => {
    await using server = await numbered()
    // The clock does not run, so unused memory is not dropped meanwhile.
    using on = openTestPool(server.port, {}, createManualClock())
    const first = replyOf(await on.call(), '1')
    const second = replyOf(await on.call(), '2')
    assert.ok(second.body.buffer !== first.body.buffer)
    assert.equal(first.body.toString(), '1'.repeat(BODY_BYTES))
    first.pooled?.release()
    const third = replyOf(await on.call(), '3')
    assert.ok(third.body.buffer === first.body.buffer)
    assert.equal(second.body.toString(), '2'.repeat(BODY_BYTES))
  })

  it('is dropped when no call is under way', async () => {
    await using server = await numbered()
    const clock = createManualClock()
    using on = openTestPool(server.port, {}, clock)
    const first = replyOf(await on.call(), '1')
    first.pooled?.release()
    clock.advance(100)
    const second = replyOf(await on.call(), '2')
    assert.ok(second.body.buffer !== first.body.buffer)
  })

  it('is not pooled for small bodies', async () => {
    await using server = await startResponseServer((socket) => void socket.write(ok('z'.repeat(400))))
    using on = openTestPool(server.port)
    const outcome = await on.call()
    assert.ok(outcome.kind === 'reply')
    assert.equal(outcome.pooled, undefined)
  })
})
