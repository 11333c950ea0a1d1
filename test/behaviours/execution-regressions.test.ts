import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { createManualClock } from '../../src/core/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { checkConnection, type Published } from '../support/execution/history-checker.ts'
import {
  createSeqMemory,
  rawEvents,
  startTestExecution,
  statusOf,
  reportTps as tps,
} from '../support/execution/start.ts'
import { liveTexts as after, helloOf, openStream, refusedHandshake } from '../support/execution/stream-reader.ts'

/** One test for each defect of the earlier public gateway (the list R1 to R18); those of time, REST and metrics have files of their own. */
describe('regressions of the earlier gateway', () => {
  test('R1: a resumed client gets, byte for byte, what an uninterrupted one got', async () => {
    await using service = await startTestExecution()
    const url = `${service.ws}/v1/ws?subscribe=TPS,TxnLog`
    await using steady = await openStream(url)
    await using other = await openStream(`${service.ws}/v1/ws?subscribe=Lifecycle`)
    await steady.until(1)
    await other.until(1)
    for (let at = 0; at < 40; at++) service.source.report(tps(at), rawEvents(3, at * 3))
    await steady.until(81)
    const seqs = after(steady).map((text) => (JSON.parse(text) as { seq: number }).seq)
    for (const at of [1, 7, 40, 78]) {
      await using back = await openStream(`${url}&resume_from=${seqs[at]}`)
      service.source.report(tps(1000 + at))
      await back.until(1 + 80 - at)
      await steady.until(steady.texts.length)
      assert.equal(helloOf(back).resumed, true)
      await until('the uninterrupted client has it too', () => after(steady).length >= after(back).length + at + 1)
      assert.deepEqual(after(back), after(steady).slice(at + 1), `resumed at ${at}`)
      assert(!after(back).some((text) => text.includes('StorageAccess')), 'blocked events are in neither')
    }
    assert.equal(other.texts.length, 1)
  })

  test('R2: a resume across 99,999 frames reaches a slow reader without a gap', async () => {
    const count = 99_999
    await using service = await startTestExecution()
    service.source.report(tps(1))
    const start = (await statusOf(service)).newest_seqno
    for (let at = 0; at < count; at += 1000)
      service.source.report(...Array.from({ length: Math.min(1000, count - at) }, (_, n) => tps(at + n)))
    await using client = await openStream(`${service.ws}/v1/ws?subscribe=TPS&resume_from=${start}`)
    // A reader that pauses repeatedly, so that the server has to wait for it.
    const stop = setInterval(() => {
      client.pause()
      setTimeout(() => client.resume(), 2)
    }, 5)
    await until('everything came', () => client.texts.length > count, 60_000)
    clearInterval(stop)
    client.resume()
    const published: Published[] = Array.from({ length: count }, (_, at) => ({
      seq: start + 1 + at,
      text: `{"seq":${start + 1 + at},"TPS":${at}}`,
    }))
    const { violations, reportedGaps } = checkConnection(
      { texts: client.texts, resumeFrom: String(start), isComplete: true },
      published,
    )
    assert.deepEqual([violations, reportedGaps], [[], []])
  })

  test('R3: a client that missed no frame gets none on resume', async () => {
    await using service = await startTestExecution()
    service.source.report(tps(1), tps(2))
    const status = await statusOf(service)
    await using client = await openStream(`${service.ws}/v1/ws?resume_from=${status.newest_seqno}`)
    await client.until(1)
    assert.equal(helloOf(client).resumed, true)
    service.source.report(tps(3))
    await client.until(2)
    assert.deepEqual(client.frames[1], { seq: status.newest_seqno + 1, TPS: 3 })
  })

  test('R4: resumes at every boundary of the buffer as listed', async () => {
    await using service = await startTestExecution({
      settings: { resume: { entriesMax: 5, bytesMax: 1_000_000, eventsLingerMs: 0 } },
    })
    for (let at = 0; at < 20; at++) service.source.report(tps(at))
    const window = await statusOf(service)
    const { oldest_seqno: oldest, newest_seqno: newest } = window
    assert.equal(newest - oldest, 4)
    const table = [
      [oldest - 2, 'too_old'],
      [oldest - 1, 5],
      [oldest, 4],
      [newest - 1, 1],
      [newest, 0],
      [newest + 1, 'ahead'],
      ['', 'invalid'],
      ['12.5', 'invalid'],
      ['-1', 'invalid'],
      ['0x10', 'invalid'],
      ['99999999999999999999', 'invalid'],
    ] as const
    for (const [cursor, expected] of table) {
      await using client = await openStream(`${service.ws}/v1/ws?subscribe=TPS&resume_from=${cursor}`)
      if (typeof expected === 'number') {
        await client.until(1 + expected)
        assert.equal(helloOf(client).resumed, true, String(cursor))
        assert.deepEqual(
          client.frames.slice(1).map(({ seq }) => seq),
          Array.from({ length: expected }, (_, at) => newest - expected + 1 + at),
        )
        continue
      }
      await client.until(3)
      assert.equal(helloOf(client).resumed, false, String(cursor))
      assert.deepEqual(client.frames[1], {
        seq: 0,
        Warning: {
          type: 'resume_out_of_window',
          requested: String(cursor),
          oldest_seqno: oldest,
          newest_seqno: newest,
          reason: expected,
        },
      })
      assert.deepEqual(client.frames[2], { seq: newest, TPS: 19 })
    }
  })

  test('R5: sequence numbers continue across restarts, and an old cursor never matches new data', async () => {
    const seqStore = createSeqMemory()
    let cursor = 0
    for (let restart = 0; restart < 3; restart++) {
      await using service = await startTestExecution({ deps: { seqStore } })
      if (restart > 0) {
        await using early = await openStream(`${service.ws}/v1/ws?resume_from=${cursor}`)
        await early.until(2)
        assert.equal(helloOf(early).resumed, false)
      }
      service.source.report(tps(restart))
      const status = await statusOf(service)
      assert(status.newest_seqno > cursor + 1 && status.newest_seqno < 2 ** 53)
      if (restart > 0) {
        await using late = await openStream(`${service.ws}/v1/ws?resume_from=${cursor}`)
        await late.until(2)
        assert.equal(helloOf(late).resumed, false)
        assert.match(late.texts[1] ?? '', /resume_out_of_window.*too_old/)
      }
      cursor = status.newest_seqno
    }
  })

  test('R6, R7: a stalled client gets the count of every lost frame, and sequence numbers increase strictly', async () => {
    await using service = await startTestExecution({
      settings: {
        client: { framesMax: 64, bytesMax: 1_048_576, dropsMax: 1_000_000, pingMs: 30_000, pingsMissedMax: 2 },
      },
    })
    await using client = await openStream(`${service.ws}/v1/ws?subscribe=TopAccesses,TPS`)
    await client.until(1)
    const { newest_seqno: start } = helloOf(client)
    const published: Published[] = []
    const fill = Array.from({ length: 10 }, () => ({ key: `0x${'a'.repeat(40)}` as const, count: 1 }))
    const report = (n: number): void => {
      const data = { account: [...fill, { key: `0x${'b'.repeat(40)}` as const, count: n }], storage: [] }
      service.source.report({ kind: 'top-accesses', data })
      const seq = start + published.length + 1
      published.push({ seq, text: `{"seq":${seq},"TopAccesses":${JSON.stringify(data)}}` })
    }
    client.pause()
    // More than the buffers of both sockets, so that frames are queued and then dropped.
    for (let at = 0; at < 30_000; at++) {
      report(at)
      if (at % 100 === 0) await new Promise(setImmediate)
    }
    client.resume()
    // The first reports may be dropped as well: the queue empties only as the client reads.
    await until('it has caught up', async () => {
      report(-1)
      await new Promise((resolve) => setTimeout(resolve, 20))
      return client.texts.at(-1) === published.at(-1)?.text
    })
    const { violations, reportedGaps } = checkConnection({ texts: client.texts, isComplete: true }, published)
    assert.deepEqual(violations, [])
    assert(reportedGaps.length > 0, 'frames were dropped')
    const dropped = reportedGaps.reduce((sum, { from, to }) => sum + to - from + 1, 0)
    const frames = client.frames.filter(({ seq }) => seq > 0).length
    assert.equal(frames + dropped, published.length, 'every number is accounted for')
    const seqs = client.frames.map(({ seq }) => seq).filter((seq) => seq > 0)
    assert(seqs.every((seq, at) => at === 0 || seq > (seqs[at - 1] as number)))
  })

  test('R6: a client that never reads is closed with 1008 and the reason', async () => {
    await using service = await startTestExecution({
      settings: { client: { framesMax: 16, bytesMax: 1_048_576, dropsMax: 500, pingMs: 30_000, pingsMissedMax: 2 } },
    })
    await using client = await openStream(`${service.ws}/v1/ws?subscribe=TopAccesses`)
    await client.until(1)
    client.pause()
    const data = {
      account: Array.from({ length: 200 }, () => ({ key: `0x${'a'.repeat(40)}` as const, count: 1 })),
      storage: [],
    }
    await until('it was closed', async () => {
      for (let at = 0; at < 100; at++) service.source.report({ kind: 'top-accesses', data })
      return service.registry.value('sluice_execution_ws_dropped_total') === 500
    })
    client.resume()
    const { code, reason } = await client.untilClosed()
    assert(code === 1008 || code === 1006, String(code))
    if (code === 1008) assert.match(reason, /too slow: 500 frames dropped/)
  })

  test('R11: a thousand failed handshakes hold no connection permit', async () => {
    await using service = await startTestExecution({
      settings: { connectionsPerAddress: 3, ws: { countsLoopback: true } },
    })
    const { port } = service.execution.address
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 50 }, async () => {
          const socket = connect(port, '127.0.0.1')
          socket.on('error', () => {})
          socket.end(
            'GET /v1/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: bad\r\n\r\n',
          )
          socket.resume()
          await once(socket, 'close')
        }),
      )
    }
    await using one = await openStream(`${service.ws}/v1/ws`)
    await using two = await openStream(`${service.ws}/v1/ws`)
    await using three = await openStream(`${service.ws}/v1/ws`)
    await Promise.all([one.until(1), two.until(1), three.until(1)])
    const { status, body, headers } = await refusedHandshake(`${service.ws}/v1/ws`)
    assert.equal(status, 429)
    assert.match(body, /3 connections of one address/)
    assert.equal(headers['retry-after'], '5')
    await one[Symbol.asyncDispose]()
    await until('its permit is released', async () => (await statusOf(service)).connected_clients === 2)
    await using four = await openStream(`${service.ws}/v1/ws`)
    await four.until(1)
  })

  test('R12: a forwarded address counts only from a proxy that the operator named', async () => {
    const settings = { connectionsPerAddress: 1, ws: { countsLoopback: true } }
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
    await using naive = await startTestExecution({ settings })
    await using first = await openStream(`${naive.ws}/v1/ws`, from('192.0.2.1'))
    await first.until(1)
    assert.equal((await refusedHandshake(`${naive.ws}/v1/ws`, from('192.0.2.2').headers)).status, 429)
    await using proxied = await startTestExecution({ settings: { ...settings, trustedProxies: ['127.0.0.1'] } })
    await using one = await openStream(`${proxied.ws}/v1/ws`, from('192.0.2.1'))
    await using two = await openStream(`${proxied.ws}/v1/ws`, from('192.0.2.2'))
    await Promise.all([one.until(1), two.until(1)])
    // Entries to the left of the last hop can be forged.
    const forged = from('192.0.2.9, 192.0.2.2').headers
    assert.equal((await refusedHandshake(`${proxied.ws}/v1/ws`, forged)).status, 429)
  })

  test('R15: an invalid subscribe gets an Error with the reason, and the old subscription stays', async () => {
    await using service = await startTestExecution()
    await using client = await openStream(`${service.ws}/v1/ws?subscribe=TPS`)
    await client.until(1)
    const many = [
      'BlockStart',
      'BlockEnd',
      'BlockQC',
      'BlockFinalized',
      'BlockVerified',
      'TxnLog',
      'TxnEnd',
      'TPS',
      'Lifecycle',
    ]
    const table: [unknown, string, RegExp][] = [
      ['{', 'invalid_subscribe', /not JSON/],
      [[], 'invalid_subscribe', /Send \{"subscribe"/],
      [{ subscribe: [] }, 'empty_subscribe', /at least one/],
      [{ subscribe: { events: [] } }, 'empty_subscribe', /at least one/],
      [{ subscribe: many }, 'subscribe_limit', /at most 8 items, not 9/],
      [{ subscribe: ['TSP'] }, 'invalid_subscribe', /no item "TSP".*Did you mean TPS/],
      [{ subscribe: ['StorageAccess'] }, 'invalid_subscribe', /does not offer "StorageAccess"/],
      [{ subscribe: 'TPS' }, 'invalid_subscribe', /list of names, or an object/],
      [{ subscribe: { events: ['TPS'], filter: [] } }, 'invalid_subscribe', /no field "filter"/],
      [{ subscribe: { events: ['TxnLog'], filters: [{ adress: '0x' }] } }, 'invalid_subscribe', /no field "adress"/],
      [{ subscribe: { events: ['TxnLog'], filters: [{ address: '0x12' }] } }, 'invalid_subscribe', /20 bytes/],
      [{ subscribe: { events: ['TxnLog'], filters: [{ txn_index: {} }] } }, 'invalid_subscribe', /min/],
      [{ subscribe: { events: ['TxnLog'], correlate: true } }, 'invalid_subscribe', /needs TxnHeaderStart/],
      [{ subscribe: { events: ['TxnLog'], correlate: 1 } }, 'invalid_subscribe', /true or false/],
    ]
    for (const [at, [message, code, words]] of table.entries()) {
      client.send(message)
      await client.until(2 + at)
      const frame = client.frames[1 + at] as { seq: number; Error: { code: string; message: string } }
      assert.deepEqual([frame.seq, frame.Error.code], [0, code], JSON.stringify(message))
      assert.match(frame.Error.message, words)
    }
    service.source.report(tps(3))
    await client.until(2 + table.length)
    assert.equal(Object.keys(client.frames.at(-1) ?? {})[1], 'TPS')
    // The same in the URL: the default set stays, and the error is reported.
    await using mistaken = await openStream(`${service.ws}/v1/ws?subscribe=TSP&resume_from=1`)
    await mistaken.until(3)
    assert.deepEqual(helloOf(mistaken).subscribed.events.length, 4)
    assert.match(mistaken.texts[1] ?? '', /"Error":\{"code":"invalid_subscribe"/)
  })

  test('R18: min_stage is Proposed or refused; no frame is held back or dropped silently', async () => {
    await using service = await startTestExecution()
    await using client = await openStream(`${service.ws}/v1/ws`)
    await client.until(1)
    client.send({ subscribe: { events: ['TxnLog'], min_stage: 'Finalized' } })
    await client.until(2)
    assert.match(client.texts[1] ?? '', /invalid_subscribe.*Subscribe to Lifecycle/)
    client.send({ subscribe: { events: ['TxnLog'], min_stage: 'Proposed' } })
    await client.until(3)
    assert.match(client.texts[2] ?? '', /"Subscribed":\{"events":\["TxnLog"\]/)
  })

  test('closes a client that floods messages with 1008, and one with a message over the limit with 1009', async () => {
    await using service = await startTestExecution()
    await using chatty = await openStream(`${service.ws}/v1/ws`)
    await chatty.until(1)
    for (let at = 0; at < 30; at++) chatty.send({ subscribe: ['TPS'] })
    const { code, reason } = await chatty.untilClosed()
    assert.equal(code, 1008)
    assert.match(reason, /messages a second/)
    await using large = await openStream(`${service.ws}/v1/ws`)
    large.send('x'.repeat(70_000))
    assert.equal((await large.untilClosed()).code, 1009)
  })

  test('terminates a peer that does not respond to pings after 60 s, not before', async () => {
    const clock = createManualClock()
    await using service = await startTestExecution({ clock })
    await using alive = await openStream(`${service.ws}/v1/ws`)
    await using dead = await openStream(`${service.ws}/v1/ws`)
    await Promise.all([alive.until(1), dead.until(1)])
    dead.pause()
    const connected = async () => (await statusOf(service)).connected_clients
    for (const [seconds, left] of [
      [30, 2],
      [60, 2],
      [90, 1],
    ] as const) {
      service.source.beat()
      clock.advance(30_000 - 1)
      service.source.beat()
      clock.advance(1)
      await until(`${left} are left after ${seconds} s`, async () => (await connected()) === left)
      // The pong of the live client arrives before the next ping.
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })
})
