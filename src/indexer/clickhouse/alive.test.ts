import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { type HttpCall, HttpCallFailed, type HttpReply } from '../../platform/http/client/client.ts'
import { watchServer } from './alive.ts'

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** A server that answers as long as it is told to. */
function fakeServer() {
  const reported = { responses: true, pings: 0 }
  const send = ({ signal }: HttpCall) => {
    reported.pings++
    if (reported.responses) return Promise.resolve({ status: 200, headers: {}, body: Readable.from(['Ok.\n']) })
    return new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(new Error('late'))))
  }
  return { told: reported, send }
}

async function pass(clock: ReturnType<typeof createManualClock>, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    clock.advance(250)
    await settle()
  }
}

test('a server that answers is left in peace, one that does not is given up within ten seconds', async () => {
  const clock = createManualClock()
  const server = fakeServer()
  using watch = watchServer(server, clock)
  await pass(clock, 60_000)
  assert.equal(watch.signal.aborted, false)
  assert.ok(server.told.pings >= 20 && server.told.pings <= 30, `${server.told.pings} pings`)
  server.told.responses = false
  await pass(clock, 5_000)
  assert.equal(watch.signal.aborted, false)
  await pass(clock, 5_000)
  assert.equal(watch.signal.aborted, true)
})

test('the first ping may be asked for early and with less patience; those after it are not', async () => {
  const first = { afterMs: 250, withinMs: 500 }
  for (const responsesFirst of [false, true]) {
    const clock = createManualClock()
    const server = fakeServer()
    server.told.responses = responsesFirst
    using watch = watchServer(server, clock, first)
    await pass(clock, 250)
    assert.equal(server.told.pings, 1)
    await pass(clock, 500)
    assert.equal(watch.signal.aborted, !responsesFirst)
    server.told.responses = false
    await pass(clock, 5_000)
    assert.equal(watch.signal.aborted, !responsesFirst, 'one that was there is given the usual time')
    await pass(clock, 5_000)
    assert.equal(watch.signal.aborted, true)
  }
})

test('a machine that says there is nobody is not silent: the connection under watch hears it for itself', async () => {
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

test('a loop that was held up hears what came meanwhile before it gives up', async () => {
  const clock = createManualClock()
  const response = Promise.withResolvers<HttpReply>()
  using watch = watchServer({ send: () => response.promise }, clock, { afterMs: 250, withinMs: 500 })
  await pass(clock, 250)
  clock.advance(250)
  // The loop stood still for long; the answer is read after the timers that were due.
  response.resolve({ status: 200, headers: {}, body: Readable.from(['Ok.\n']) })
  await pass(clock, 2_000)
  assert.equal(watch.signal.aborted, false)
})

test('one ping that is lost is nothing, and nobody is asked after the end', async () => {
  const clock = createManualClock()
  const server = fakeServer()
  {
    using watch = watchServer(server, clock)
    server.told.responses = false
    await pass(clock, 4_000)
    server.told.responses = true
    await pass(clock, 20_000)
    assert.equal(watch.signal.aborted, false)
  }
  const { pings } = server.told
  await pass(clock, 20_000)
  assert.equal(server.told.pings, pings)
})
