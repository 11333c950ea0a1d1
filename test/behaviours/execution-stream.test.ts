import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { StreamFrame } from '../../src/contract/stream-events.ts'
import type { SourceMessage } from '../../src/execution/source/message.ts'
import { rawEvents, startTestExecution, reportTps as tps } from '../support/execution/start.ts'
import { helloOf, openStream, type StreamReader } from '../support/execution/stream-reader.ts'

const DOCS = join(import.meta.dirname, '../../docs')

describe('the stream', () => {
  test('a client without a subscription gets Hello, the snapshot and published frames', async () => {
    await using service = await startTestExecution()
    service.source.report(tps(7))
    for (const path of ['/v1/ws', '/ws', '/']) {
      await using client = await openStream(`${service.ws}${path}`)
      await client.until(2)
      const hello = helloOf(client)
      assert.equal(hello.resumed, false)
      assert.deepEqual(hello.subscribed.events, ['TPS', 'ContentionData', 'TopAccesses', 'Lifecycle'])
      assert.deepEqual(client.frames[1], { seq: hello.newest_seqno, TPS: 7 })
      service.source.report(tps(7))
      await client.until(3)
      assert.deepEqual(client.frames[2], { seq: hello.newest_seqno + 1, TPS: 7 })
    }
  })

  test('Hello has the fields of the reference and the configured limits', async () => {
    await using service = await startTestExecution()
    await using client = await openStream(`${service.ws}/v1/ws`)
    await client.until(1)
    const { limits, ...hello } = helloOf(client)
    assert.deepEqual(limits, {
      backfill_events: 100_000,
      buffer_per_client: 4096,
      slow_off_limit: 10_000,
      heartbeat_interval: 30,
      heartbeat_timeout: 60,
      max_subscribes: 8,
    })
    assert.deepEqual(
      [hello.protocol_version, hello.server_version, hello.chain_id, hello.block_number, hello.snapshot],
      [1, '0.0.0-test', null, 0, 0],
    )
    assert.deepEqual(hello.available_filters, ['txn_index', 'log_index', 'address', 'topics'])
    assert(hello.blocked_events.includes('StorageAccess') && !hello.blocked_events.includes('TxnLog'))
  })

  test('frames of a snapshot share one seq, which is the cursor once all of them came; later frames have their own', async () => {
    await using service = await startTestExecution()
    service.source.report(tps(7), { kind: 'top-accesses', data: { account: [], storage: [] } }, tps(8))
    await using client = await openStream(`${service.ws}/v1/ws`)
    await client.until(3)
    const hello = helloOf(client)
    assert.equal(hello.snapshot, 2)
    assert.deepEqual(client.frames.slice(1), [
      { seq: hello.newest_seqno, TPS: 8 },
      { seq: hello.newest_seqno, TopAccesses: { account: [], storage: [] } },
    ])
    service.source.report(tps(9), tps(10))
    await client.until(5)
    assert.deepEqual(
      client.frames.slice(3).map(({ seq }) => seq),
      [hello.newest_seqno + 1, hello.newest_seqno + 2],
    )
    await using resumed = await openStream(`${service.ws}/v1/ws?resume_from=${hello.newest_seqno}`)
    await resumed.until(3)
    assert.deepEqual(resumed.texts.slice(1), client.texts.slice(3), 'exactly the frames after the snapshot')
    const { info } = JSON.parse(readFileSync(join(DOCS, 'asyncapi/execution.json'), 'utf8')) as {
      info: { description: string }
    }
    assert.match(info.description, /frames of a snapshot.* share one `seq`/)
    assert.match(readFileSync(join(DOCS, 'api.md'), 'utf8'), /\*\*Snapshot\.\*\*.*same `seq`/)
  })

  test('every frame is an object of two keys, seq first', async () => {
    await using service = await startTestExecution()
    await using client = await openStream(`${service.ws}/v1/ws?subscribe=TPS,TxnLog`)
    await client.until(1)
    service.source.report(tps(1), rawEvents(3), {
      kind: 'gap',
      fromSeqno: 3,
      toSeqno: 5,
      blocksDropped: 1,
    })
    await client.until(4)
    for (const text of client.texts) assert.match(text, /^\{"seq":\d+,"[A-Za-z]+":/)
    for (const frame of client.frames) assert.equal(Object.keys(frame).length, 2)
    assert.deepEqual(client.frames[3], {
      seq: 0,
      Warning: { type: 'ring_gap', from_seqno: 3, to_seqno: 5, blocks_dropped: 1 },
    } satisfies StreamFrame)
  })

  test('a subscribe message replaces the subscription; new items start with a snapshot', async () => {
    await using service = await startTestExecution()
    service.source.report(tps(5))
    await using client = await openStream(`${service.ws}/v1/ws?subscribe=Lifecycle`)
    await client.until(1)
    client.send({ subscribe: ['TPS', 'Lifecycle'] })
    await client.until(3)
    const { newest_seqno } = helloOf(client)
    assert.deepEqual(client.frames.slice(1), [
      {
        seq: 0,
        Subscribed: { events: ['TPS', 'Lifecycle'], filters: [], correlate: false, min_stage: 'Proposed', snapshot: 1 },
      },
      { seq: newest_seqno, TPS: 5 },
    ])
    // An equal subscription changes nothing and sends nothing.
    client.send({ subscribe: ['Lifecycle', 'TPS'] })
    client.send({ subscribe: ['Lifecycle'] })
    await client.until(4)
    service.source.report(tps(6))
    client.send({ subscribe: ['TPS'] })
    await client.until(6)
    assert.deepEqual(
      client.frames.slice(3).map((frame) => Object.keys(frame)[1]),
      ['Subscribed', 'Subscribed', 'TPS'],
    )
  })

  test('filters: fields of a filter are ANDed, filters are ORed; correlate includes the whole transaction', async () => {
    await using service = await startTestExecution()
    const [a, b] = ['0x00000000000000000000000000000000000000aa', '0x00000000000000000000000000000000000000bb'] as const
    const topic = `0x${'7'.repeat(64)}` as const
    const filters = [
      { events: ['TxnLog'], address: a, topics: [topic] },
      { events: ['TxnLog'], txn_index: { min: 5, max: 6 } },
    ]
    const filtered = encodeURIComponent(JSON.stringify({ events: ['TxnLog', 'BlockStart'], filters }))
    const correlated = encodeURIComponent(
      JSON.stringify({
        events: ['TxnHeaderStart'],
        filters: [{ address: b.toUpperCase().replace('X', 'x') }],
        correlate: true,
      }),
    )
    await using one = await openStream(`${service.ws}/v1/ws?subscribe=${filtered}`)
    await using two = await openStream(`${service.ws}/v1/ws?subscribe=${correlated}`)
    await one.until(1)
    await two.until(1)
    const event = (
      n: number,
      name: 'TxnLog' | 'TxnHeaderStart' | 'BlockStart' | 'TxnEnd',
      fields: object,
      header?: object,
    ) => ({
      name,
      json: String(n),
      fields,
      header,
    })
    const header = { txnIndex: 2, addresses: [b] }
    service.source.report({
      kind: 'events',
      events: [
        event(1, 'BlockStart', {}),
        event(2, 'TxnLog', { txnIndex: 1, addresses: [a], topics: [topic, topic] }),
        event(3, 'TxnLog', { txnIndex: 1, addresses: [a], topics: [] }),
        event(4, 'TxnLog', { txnIndex: 1, addresses: [b], topics: [topic] }),
        event(5, 'TxnLog', { txnIndex: 6, addresses: [b], topics: [] }),
        event(6, 'TxnLog', { txnIndex: 7, addresses: [b], topics: [] }),
        event(7, 'TxnHeaderStart', header, header),
        event(8, 'TxnLog', { txnIndex: 2, addresses: [a], topics: [] }, header),
        event(9, 'TxnEnd', { txnIndex: 2 }, header),
        event(10, 'TxnEnd', { txnIndex: 3 }, { txnIndex: 3, addresses: [a] }),
      ],
    } as SourceMessage)
    await one.until(2)
    await two.until(2)
    const events = (client: StreamReader) => (client.frames[1] as { Events: unknown }).Events
    assert.deepEqual(events(one), [1, 2, 5])
    assert.deepEqual(events(two), [7, 8, 9])
  })
})
