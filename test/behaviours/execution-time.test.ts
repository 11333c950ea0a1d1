import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../../src/core/clock.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import type { LastEvent } from '../../src/execution/source/last-event.ts'
import { NO_STATS } from '../../src/execution/source/message.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { superviseExecution } from '../../src/processes/compose/services/supervise-execution.ts'
import {
  createLastEvent,
  getJson,
  reportTps,
  startTestExecution,
  statusOf,
  type TestExecution,
} from '../support/execution/start.ts'
import { openStream, type StreamReader } from '../support/execution/stream-reader.ts'

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

  test('F11: a drain closes the clients of the stream one after another, and they are sent frames until then', async () => {
    const clock = createManualClock()
    await using service = await startOn(clock)
    await using clients = new AsyncDisposableStack()
    const readers: StreamReader[] = []
    for (let at = 0; at < 20; at++) readers.push(clients.use(await openStream(`${service.ws}/v1/ws`)))
    await Promise.all(readers.map((reader) => reader.until(2)))
    const closed = () => readers.filter((reader) => reader.closed !== undefined)
    const last = readers.at(-1)
    const before = last?.frames.length ?? 0
    const drained = service.execution.drain(12_000)
    // The first one at once, then one each 250 ms.
    for (const left of [1, 11, 20]) {
      await until(`${left} have left`, () => closed().length >= left)
      assert.equal(closed().length, left)
      if (left === 11) service.source.report(reportTps(2))
      if (left === 11) await last?.until(before + 1)
      await clock.advanceAsync(2500)
    }
    await drained
    assert.ok(closed().every((reader) => reader.closed?.code === 1012))
  })

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
  /** The service under its supervisor, on one state folder. */
  async function startSupervised(clock: ManualClock, lastEvent: LastEvent = createLastEvent(clock)) {
    const words: string[] = []
    const services: TestExecution[] = []
    const lifecycle = {
      degraded: (part: string, reason: string) => {
        if (words.at(-1) !== `${part}: ${reason}`) words.push(`${part}: ${reason}`)
      },
      recovered: (part: string) => {
        if (words.length > 0 && words.at(-1) !== `${part} recovered`) words.push(`${part} recovered`)
      },
    }
    const kept = await superviseExecution({
      log: silentLogger,
      clock,
      random: createSeededRandom(3),
      lifecycle,
      async start(port) {
        const listen = { host: '127.0.0.1', port: port ?? 0 }
        const service = await startTestExecution({ clock, settings: { listen }, deps: { lastEvent, lifecycle } })
        services.push(service)
        return service.execution
      },
    })
    return { kept, words, services, untilDown, untilUp, [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose]() }

    async function untilDown(): Promise<void> {
      await until('it has ended', async () => {
        await clock.advanceAsync(10)
        return kept.current() === undefined
      })
    }

    async function untilUp(): Promise<TestExecution> {
      const before = services.length
      await until('it runs again', async () => {
        if (services.length === before) await clock.advanceAsync(100)
        return kept.current() !== undefined
      })
      return services.at(-1) as TestExecution
    }
  }

  test('a service that ended is restarted on its port with growing delays, and the lifecycle is degraded until an event comes', async () => {
    const clock = createManualClock()
    await using running = await startSupervised(clock)
    const { kept, words, services } = running
    const delays: number[] = []
    for (let round = 1; round <= 4; round++) {
      await clock.advanceAsync(35_000)
      await running.untilDown()
      const before = clock.monotonicMs()
      const service = await running.untilUp()
      delays.push(clock.monotonicMs() - before)
      assert.equal(kept.current()?.address.port, kept.address.port)
      assert.deepEqual((await healthOf(service)).slice(0, 2), [503, false])
    }
    assert.equal(services.length, 5)
    assert((delays[3] as number) > (delays[0] as number) * 2, `delays grow: ${delays.join(', ')}`)
    assert.deepEqual(words, ['execution: no event for 30 s or longer'])
    services.at(-1)?.source.beat()
    assert.deepEqual(words.slice(1), ['execution recovered'])
  })

  test('R8: a dead source is unhealthy over all restarts of the service, and its age continues; the next event ends both', async () => {
    const clock = createManualClock()
    await using running = await startSupervised(clock)
    const first = running.services[0] as TestExecution
    first.source.beat()
    const eventMs = clock.monotonicMs()
    const ageSecs = () => Math.floor((clock.monotonicMs() - eventMs) / 1000)
    for (let round = 1; round <= 3; round++) {
      // In the first round 30 s without an event and 5 s for pollers; later 29 s have passed.
      await clock.advanceAsync(round === 1 ? 35_000 : 6000)
      await running.untilDown()
      const down = running.services.at(-1) as TestExecution
      assert.equal(down.registry.value('sluice_execution_healthy'), 0, 'also between two runs')
      assert(Math.abs((down.registry.value('sluice_execution_last_event_age_seconds') ?? 0) - ageSecs()) <= 1)
      const service = await running.untilUp()
      for (const waitMs of [0, 9000, 20_000]) {
        clock.advance(waitMs)
        assert.deepEqual(await healthOf(service), [503, false, ageSecs()])
        const { status, last_event_age_secs } = await statusOf(service)
        assert.deepEqual([status, last_event_age_secs], ['degraded', ageSecs()])
      }
      // It has waited 29 s for an event and does not end before 30 s.
      assert.notEqual(running.kept.current(), undefined)
    }
    const last = running.services.at(-1) as TestExecution
    last.source.beat()
    assert.deepEqual(await healthOf(last), [200, true, 0])
    assert.equal((await statusOf(last)).status, 'healthy')
    assert.deepEqual(running.words, ['execution: no event for 30 s or longer', 'execution recovered'])
  })

  test('events that a dead node left in its ring do not count as new ones', async () => {
    const clock = createManualClock()
    const nowMs = clock.nowMs()
    await using running = await startSupervised(clock, createLastEvent(clock, nowMs - HOUR_MS))
    const service = running.services[0] as TestExecution
    const position = { seqno: 9, lagEvents: 0, readMs: 0, stats: NO_STATS }
    service.source.report({ kind: 'progress', position: { ...position, recordedMs: nowMs - HOUR_MS } })
    assert.deepEqual(await healthOf(service), [503, false, 3600])
    assert.deepEqual(running.words, ['execution: no event for 30 s or longer'])
    service.source.report({ kind: 'progress', position })
    assert.deepEqual(await healthOf(service), [200, true, 0])
  })

  test('a start with a last event 20 s old is healthy for 10 s and waits 30 s for an event', async () => {
    const clock = createManualClock()
    await using running = await startSupervised(clock, createLastEvent(clock, clock.nowMs() - 20_000))
    const service = running.services[0] as TestExecution
    assert.equal((await statusOf(service)).status, 'degraded')
    clock.advance(9999)
    assert.deepEqual(await healthOf(service), [200, true, 29])
    assert.deepEqual(running.words, [])
    clock.advance(1)
    assert.deepEqual(await healthOf(service), [503, false, 30])
    assert.deepEqual(running.words, ['execution: no event for 30 s or longer'])
    clock.advance(19_999)
    assert.notEqual(running.kept.current(), undefined)
    await clock.advanceAsync(5001)
    await running.untilDown()
  })
})
