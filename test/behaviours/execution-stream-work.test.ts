import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createManualClock } from '../../src/core/clock.ts'
import type { SourceMessage } from '../../src/execution/source/message.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { reportTps, startTestExecution, statusOf } from '../support/execution/start.ts'
import { helloOf, openStream, refusedHandshake } from '../support/execution/stream-reader.ts'
import { watchEventLoop } from '../support/process/event-loop-cost.ts'

/** Limits on the work that one client of the stream can cause. */

const address = (n: number): `0x${string}` => `0x${n.toString(16).padStart(40, '0')}`

function logs(count: number, size: number): SourceMessage {
  const json = JSON.stringify({ event_name: 'TxnLog', note: 'x'.repeat(size) })
  const fields = { addresses: [address(0)], topics: [] }
  return {
    kind: 'events',
    events: Array.from({ length: count }, () => ({ name: 'TxnLog', json, fields, header: undefined })),
  }
}

/** Filters that match nothing and are slow to evaluate. */
const HOPELESS = Array.from({ length: 16 }, (_, filter) => ({
  txn_index: { min: 0 },
  address: Array.from({ length: 4 }, (_, n) => address(1 + filter * 4 + n)),
}))

describe('resume', () => {
  test('with filters that match nothing blocks the event loop less than 50 ms and reaches the end of the stream', async () => {
    await using service = await startTestExecution({ clock: systemClock })
    await using recording = await openStream(`${service.ws}/v1/ws?subscribe=TxnLog`)
    await recording.until(1)
    service.source.report(reportTps(1))
    const { newest_seqno } = await statusOf(service)
    // About as many events as the buffer holds.
    for (let batch = 0; batch < 170; batch++) service.source.report(logs(1000, 10))
    const subscribe = encodeURIComponent(JSON.stringify({ events: ['TxnLog', 'TPS'], filters: HOPELESS }))
    using turns = watchEventLoop()
    await using client = await openStream(`${service.ws}/v1/ws?resume_from=${newest_seqno}&subscribe=${subscribe}`)
    await client.until(1)
    assert.equal(helloOf(client).resumed, true)
    service.source.report(reportTps(2))
    await until('it is live', () => client.texts.some((text) => text.includes('"TPS":2')))
    assert(turns.longestMs < 50, `${turns.longestMs} ms`)
  })

  test('is charged: a client that replays the buffer repeatedly is refused, another is served', async () => {
    const clock = createManualClock()
    const settings = { trustedProxies: ['127.0.0.1'], work: { unitsPerSecond: 10, burstUnits: 1000 } }
    await using service = await startTestExecution({ clock, settings })
    await using recording = await openStream(`${service.ws}/v1/ws?subscribe=TxnLog`, {
      headers: { 'x-forwarded-for': '192.0.2.8' },
    })
    await recording.until(1)
    service.source.report(reportTps(1))
    const { newest_seqno } = await statusOf(service)
    for (let batch = 0; batch < 20; batch++) service.source.report(logs(500, 100))
    await recording.until(2)
    const heldBytes = service.registry.value('sluice_execution_resume_bytes')
    assert.ok((heldBytes ?? 0) > 20 * 500 * 300, `${heldBytes} bytes of raw events are counted`)
    const headers = { 'x-forwarded-for': '192.0.2.7' }
    const url = `${service.ws}/v1/ws?subscribe=TxnLog&resume_from=${newest_seqno}`
    let refused: Awaited<ReturnType<typeof refusedHandshake>> | undefined
    for (let times = 0; times < 40 && refused === undefined; times++) {
      const outcome = await openStream(url, { headers }).catch(() => undefined)
      if (outcome === undefined) refused = await refusedHandshake(url, headers)
      else {
        await until('it has the replay', () => outcome.texts.length >= 20)
        await outcome[Symbol.asyncDispose]()
      }
    }
    assert.equal(refused?.status, 429)
    assert.match(refused.body, /"limit":"unitsPerSecond","size":10/)
    assert.match(String(refused.headers['retry-after']), /^\d+$/)
    assert.equal(service.registry.value('sluice_execution_ws_refused_total', { reason: 'work' }), 2)
    await using other = await openStream(`${service.ws}/v1/ws`, { headers: { 'x-forwarded-for': '192.0.2.9' } })
    await other.until(1)
  })
})

test('subscribe messages are charged with their snapshots; one over the budget gets an Error', async () => {
  const clock = createManualClock()
  await using service = await startTestExecution({
    clock,
    settings: { work: { unitsPerSecond: 10, burstUnits: 1000 } },
  })
  const block = { block_number: 1, from_stage: null, to_stage: 'Proposed', time_in_previous_stage_ms: null } as const
  const rest = { block_age_ms: 0, txn_count: 0, gas_used: null }
  for (let n = 0; n < 4000; n++) {
    const change = { ...block, ...rest, block_hash: `0x${n.toString(16).padStart(64, '0')}` } as const
    const record = { ...change, current_stage: 'Proposed', stage_timings_ms: {}, total_age_ms: 0 } as const
    service.source.report({ kind: 'lifecycle', change, record })
  }
  await using client = await openStream(`${service.ws}/v1/ws?subscribe=TPS`)
  await client.until(1)
  for (let times = 0; times < 10; times++) {
    client.send({ subscribe: [times % 2 === 0 ? 'Lifecycle' : 'TPS'] })
    await until(
      'the client has a response',
      () => client.frames.filter((frame) => 'Subscribed' in frame || 'Error' in frame).length > times,
    )
    clock.advance(200)
    service.source.beat()
  }
  const errors = client.frames.flatMap((frame) => ('Error' in frame ? [frame.Error] : []))
  // Each snapshot of 4000 frames is about 250 units.
  assert(errors.length >= 1 && errors.length < 5, `${errors.length} errors`)
  assert.equal(errors[0]?.code, 'rate_limited')
  assert.match(errors[0]?.message ?? '', /10 work units per second.*\d+ ms/)
})
