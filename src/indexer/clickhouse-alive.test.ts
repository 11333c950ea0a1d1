import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import type { HttpCall } from '../host/http-client.ts'
import { watchServer } from './clickhouse-alive.ts'

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** A server that answers as long as it is told to. */
function fakeServer() {
  const told = { answers: true, pings: 0 }
  const send = ({ signal }: HttpCall) => {
    told.pings++
    if (told.answers) return Promise.resolve({ status: 200, headers: {}, body: Readable.from(['Ok.\n']) })
    return new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(new Error('late'))))
  }
  return { told, send }
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
  server.told.answers = false
  await pass(clock, 5_000)
  assert.equal(watch.signal.aborted, false)
  await pass(clock, 5_000)
  assert.equal(watch.signal.aborted, true)
})

test('one ping that is lost is nothing, and nobody is asked after the end', async () => {
  const clock = createManualClock()
  const server = fakeServer()
  {
    using watch = watchServer(server, clock)
    server.told.answers = false
    await pass(clock, 4_000)
    server.told.answers = true
    await pass(clock, 20_000)
    assert.equal(watch.signal.aborted, false)
  }
  const { pings } = server.told
  await pass(clock, 20_000)
  assert.equal(server.told.pings, pings)
})
