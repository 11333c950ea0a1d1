import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { type HttpCall, HttpCallFailed, type HttpReply } from '../../platform/http/client/client.ts'
import { watchServer } from './liveness.ts'

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** A server that responds while `state.responds` is true. */
function fakeServer() {
  const state = { responds: true, pings: 0 }
  const send = ({ signal }: HttpCall) => {
    state.pings++
    if (state.responds) return Promise.resolve({ status: 200, headers: {}, body: Readable.from(['Ok.\n']) })
    return new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(new Error('late'))))
  }
  return { state, send }
}

async function pass(clock: ReturnType<typeof createManualClock>, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    clock.advance(250)
    await settle()
  }
}

test('the signal is aborted within ten seconds after the server stops to respond, and not before', async () => {
  const clock = createManualClock()
  const server = fakeServer()
  using watch = watchServer(server, clock)
  await pass(clock, 60_000)
  assert.equal(watch.signal.aborted, false)
  assert.ok(server.state.pings >= 20 && server.state.pings <= 30, `${server.state.pings} pings`)
  server.state.responds = false
  await pass(clock, 5_000)
  assert.equal(watch.signal.aborted, false)
  await pass(clock, 5_000)
  assert.equal(watch.signal.aborted, true)
})

test('only the first ping may be early and have a shorter timeout', async () => {
  const first = { afterMs: 250, withinMs: 500 }
  for (const respondsFirst of [false, true]) {
    const clock = createManualClock()
    const server = fakeServer()
    server.state.responds = respondsFirst
    using watch = watchServer(server, clock, first)
    await pass(clock, 250)
    assert.equal(server.state.pings, 1)
    await pass(clock, 500)
    assert.equal(watch.signal.aborted, !respondsFirst)
    server.state.responds = false
    await pass(clock, 5_000)
    assert.equal(watch.signal.aborted, !respondsFirst, 'after a first response the usual timeout holds')
    await pass(clock, 5_000)
    assert.equal(watch.signal.aborted, true)
  }
})

test('a refused connection does not abort: the watched connection gets the same error itself', async () => {
  const clock = createManualClock()
  const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
  let pings = 0
  const send = () => {
    pings++
    return Promise.reject(new HttpCallFailed('no', false, refused))
  }
  using watch = watchServer({ send }, clock, { afterMs: 250, withinMs: 500 })
  await pass(clock, 60_000)
  assert.ok(pings > 10 && !watch.signal.aborted)
})

test('an event loop that was blocked reads a pending response before the ping times out', async () => {
  const clock = createManualClock()
  const response = Promise.withResolvers<HttpReply>()
  using watch = watchServer({ send: () => response.promise }, clock, { afterMs: 250, withinMs: 500 })
  await pass(clock, 250)
  clock.advance(250)
  // The event loop was blocked; the response is read after the timers that were due.
  response.resolve({ status: 200, headers: {}, body: Readable.from(['Ok.\n']) })
  await pass(clock, 2_000)
  assert.equal(watch.signal.aborted, false)
})

test('a single lost ping does not abort, and there are no pings after disposal', async () => {
  const clock = createManualClock()
  const server = fakeServer()
  {
    using watch = watchServer(server, clock)
    server.state.responds = false
    await pass(clock, 4_000)
    server.state.responds = true
    await pass(clock, 20_000)
    assert.equal(watch.signal.aborted, false)
  }
  const { pings } = server.state
  await pass(clock, 20_000)
  assert.equal(server.state.pings, pings)
})
