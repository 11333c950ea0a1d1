import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../../src/core/clock.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { superviseExecution } from '../../src/processes/compose/services/supervise-execution.ts'
import { getJson, reportTps, startTestExecution, statusOf, type TestExecution } from '../support/execution.ts'
import { openStream } from '../support/stream-reader.ts'

/** Time-dependent behaviour on an injected clock; requests and the wall clock have no influence. */

const HOUR_MS = 3_600_000

async function healthOf(service: TestExecution): Promise<[number, boolean, number]> {
  const { status, json } = await getJson(service, '/health')
  const { healthy, last_event_age_secs } = (json as { result: { healthy: boolean; last_event_age_secs: number } })
    .result
  return [status, healthy, last_event_age_secs]
}

async function startOn(clock: ManualClock): Promise<TestExecution> {
  const service = await startTestExecution({ clock })
  service.source.report(reportTps(1))
  service.source.beat()
  return service
}

describe('status and health', () => {
  test('healthy up to 10 s after an event, then degraded, healthy again with the next event', async () => {
    const clock = createManualClock()
    await using service = await startOn(clock)
    for (const [ms, status, age] of [
      [0, 'healthy', 0],
      [10_000, 'healthy', 10],
      [1, 'degraded', 10],
      [15_000, 'degraded', 25],
    ] as const) {
      clock.advance(ms)
      const record = await statusOf(service)
      assert.deepEqual([record.status, record.last_event_age_secs], [status, age])
      assert.deepEqual(await healthOf(service), [200, true, age], 'degraded is not yet unhealthy')
    }
    service.source.beat()
    assert.equal((await statusOf(service)).status, 'healthy')
    clock.advance(29_999)
    assert.equal((await healthOf(service))[0], 200)
  })

  test('R10: before the first event the age counts from the start', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock })
    assert.equal((await statusOf(service)).status, 'healthy')
    clock.advance(10_001)
    assert.equal((await statusOf(service)).status, 'degraded')
    clock.advance(19_998)
    assert.deepEqual(await healthOf(service), [200, true, 29])
    clock.advance(1)
    assert.deepEqual(await healthOf(service), [503, false, 30])
  })

  for (const polls of [0, 1000]) {
    test(`R8, T25: 503 at 30 s by a timer, then a graceful end, the same with ${polls} polls`, async () => {
      const clock = createManualClock()
      await using service = await startOn(clock)
      await using client = await openStream(`${service.ws}/v1/ws`)
      await client.until(2)
      let isEnded = false
      void service.execution.ended.then(() => {
        isEnded = true
      })
      clock.advance(29_999)
      assert.deepEqual(await healthOf(service), [200, true, 29])
      clock.advance(1001)
      for (let poll = 0; poll < polls; poll++) assert.deepEqual(await healthOf(service), [503, false, 31])
      clock.advance(3999)
      // An event now is too late: the service is already ending.
      service.source.beat()
      const [status, healthy] = await healthOf(service)
      assert.deepEqual([status, healthy, isEnded, client.closed], [503, false, false, undefined])
      await clock.advanceAsync(1)
      assert.equal((await client.untilClosed()).code, 1012)
      await until('the service has ended', async () => {
        await clock.advanceAsync(100)
        return isEnded
      })
      await assert.rejects(fetch(`${service.http}/health`))
    })
  }

  test('R9: wall clock jumps of an hour or a day have no effect', async () => {
    const clock = createManualClock()
    await using service = await startOn(clock)
    for (const jumpMs of [HOUR_MS, -HOUR_MS, 24 * HOUR_MS, -24 * HOUR_MS]) {
      clock.setWallMs(clock.nowMs() + jumpMs)
      clock.advance(1000)
      assert.deepEqual(await healthOf(service), [200, true, 1])
      const { status, uptime_secs } = await statusOf(service)
      assert.deepEqual([status, uptime_secs <= 4], ['healthy', true])
      service.source.beat()
    }
  })

  test('finishes a response in flight before the service ends', async () => {
    const clock = createManualClock()
    await using service = await startOn(clock)
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_syncing', params: [] })
    let send: (() => void) | undefined
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(body.slice(0, 10)))
        send = () => {
          controller.enqueue(new TextEncoder().encode(body.slice(10)))
          controller.close()
        }
      },
    })
    const response = fetch(`${service.http}/`, { method: 'POST', body: stream, duplex: 'half' } as RequestInit)
    await until('the request has begun', () => send !== undefined)
    // One round trip later the first bytes of the body are there too.
    await healthOf(service)
    clock.advance(35_000)
    send?.()
    assert.deepEqual(await (await response).json(), { jsonrpc: '2.0', result: false, id: 1 })
  })
})

describe('in a process of several services', () => {
  test('a service that ended is restarted on its port with growing delays, and the lifecycle is degraded meanwhile', async () => {
    const clock = createManualClock()
    const words: string[] = []
    let starts = 0
    const services: TestExecution[] = []
    await using kept = await superviseExecution({
      log: silentLogger,
      clock,
      random: createSeededRandom(3),
      lifecycle: {
        degraded: (part, reason) => void words.push(`${part}: ${reason}`),
        recovered: (part) => void words.push(`${part} is well`),
      },
      async start(port) {
        starts += 1
        const listen = { host: '127.0.0.1', port: port ?? 0 }
        const service = await startTestExecution({ clock, settings: { listen } })
        services.push(service)
        return service.execution
      },
    })
    const delays: number[] = []
    for (let round = 1; round <= 4; round++) {
      await clock.advanceAsync(35_000)
      await until('it has ended', async () => {
        await clock.advanceAsync(10)
        return kept.current() === undefined
      })
      const before = clock.monotonicMs()
      await until('it runs again', async () => {
        if (starts === round) await clock.advanceAsync(100)
        return kept.current() !== undefined
      })
      delays.push(clock.monotonicMs() - before)
      assert.equal(kept.current()?.address.port, kept.address.port)
    }
    assert.equal(starts, 5)
    assert((delays[3] as number) > (delays[0] as number) * 2, `delays grow: ${delays.join(', ')}`)
    assert.deepEqual(words.slice(0, 2), ['execution: the event ring was silent for 30 s', 'execution is well'])
  })
})
