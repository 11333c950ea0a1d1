import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { Client, credentials, type Metadata } from '@grpc/grpc-js'
import { removeProduct } from '../../src/access/provisioning/subscriptions.ts'
import type { DecodedDataSet, DecodedReader } from '../../src/gateway/geyser/decoded/source.ts'
import { createDecodedStreams } from '../../src/gateway/geyser/decoded/streams.ts'
import { accountOf, decodedTransaction } from '../../src/gateway/geyser/decoded/test-transactions.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { SlotStatus, type SubscribeUpdateSlot } from '../../src/solana/gen/geyser_pb.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type GrpcGateway, openStream, SUBSCRIBE, startGrpcGateway, tokenMetadata } from '../support/gateway/grpc.ts'
import { type Request, request, unitsUsed, updateOf } from '../support/shreds/deshred.ts'

const DESHRED = '/geyser.Geyser/SubscribeDeshred'
const ENTRIES = '/shredstream.ShredstreamProxy/SubscribeEntries'
const FILTERS_MAX = 4
const PENDING_BYTES_MAX = 64 * 1024
const address = (number: number) => encodeBase58(accountOf(number))
const ALL = request({ deshredTransactions: { all: {} } })

const reached = (holds: () => boolean) => until('the expected messages', holds)

describe('streams of decoded shreds', () => {
  let node: FakeNode
  let on: GrpcGateway
  let metadata: Metadata
  let id: string
  let token: string
  let reader: DecodedReader | undefined
  const lost = { client: 0, thread: 0 }
  let delivered = 0

  before(async () => {
    node = await startFakeNode()
    const streams = createDecodedStreams(
      { filtersMax: FILTERS_MAX, pendingBytesMax: PENDING_BYTES_MAX },
      {
        // Without the pings of every 10 s: one that a client does not read is counted as lost.
        clock: { ...systemClock, setRepeating: () => ({ cancel() {}, [Symbol.dispose]() {} }) },
        source: {
          read(given) {
            assert.equal(reader, undefined, 'one reader at a time')
            reader = given
            return { [Symbol.dispose]: () => void (reader = undefined) }
          },
        },
        meter: { delivered: () => (delivered += 1), lost: (by, messages) => (lost[by] += messages) },
      },
    )
    on = await startGrpcGateway(
      [{ name: 'fake', grpc: `http://127.0.0.1:${node.ports.grpc}` }],
      { refusalDelayMs: 10, stallMs: 200, sweepMs: 20 },
      undefined,
      streams,
    )
    const subscription = await on.gateway.subscribe({ products: ['shreds-decoded', 'bundle'] })
    id = subscription.id
    token = subscription.token
    metadata = tokenMetadata(subscription.token)
  })
  after(async () => {
    await on[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  // A cancelled stream is open until the server has read that.
  beforeEach(() => reached(() => on.gateway.access.permits.taken(id).grpcStreams === 0))

  /** A stream with these filters, once they are in effect. */
  async function subscribed(init: Request, given = metadata) {
    const stream = openStream(on.client, DESHRED, given)
    stream.send(request(init))
    // A pong follows the filters that were sent before its ping.
    stream.send(request({ ping: { id: 99 } }))
    await reached(() => stream.messages.some((message) => updateOf(message).updateOneof.case === 'pong'))
    stream.messages.length = 0
    return stream
  }

  function publish(set: Partial<DecodedDataSet>): void {
    reader?.onDataSet({
      slot: 100,
      startIndex: 32,
      endIndex: 64,
      entries: Buffer.from('entries'),
      transactions: [],
      arrivalNanos: systemClock.monotonicMs() * 1e6,
      ...set,
    })
    void reader?.onBatchEnd()
  }

  it('delivers a transaction with the names of the filters that match, its loaded addresses and its data set', async () => {
    const stream = await subscribed({
      deshredTransactions: {
        static: { accountInclude: [address(1), address(50)] },
        loaded: { accountRequired: [address(2), address(3)] },
        other: { accountInclude: [address(4)] },
        excluded: { accountExclude: [address(3)] },
      },
    })
    const deliveredBefore = delivered
    publish({
      transactions: [decodedTransaction(7, { fixed: [1], writable: [2], readonly: [3] }, { hasUnknownTable: false })],
    })
    await reached(() => stream.messages.length === 1)
    const update = updateOf(stream.messages[0] as Buffer)
    assert.deepEqual(update.filters.toSorted(), ['loaded', 'static'])
    assert.ok(update.createdAt !== undefined)
    assert.equal(update.updateOneof.case, 'deshredTransaction')
    const value = update.updateOneof.value as { slot: bigint; transaction?: Record<string, unknown> }
    assert.equal(value.slot, 100n)
    const { transaction, ...info } = value.transaction as Record<string, unknown>
    assert.deepEqual(
      { ...info, $typeName: undefined },
      {
        $typeName: undefined,
        signature: new Uint8Array(64).fill(7),
        isVote: false,
        loadedWritableAddresses: [accountOf(2)],
        loadedReadonlyAddresses: [accountOf(3)],
        completedDataSetStartingShredIndex: 32,
        completedDataSetEndingShredIndexExclusive: 64,
      },
    )
    const message = (transaction as { message: { accountKeys: Uint8Array[] } }).message
    assert.deepEqual(message.accountKeys, [accountOf(1)])
    assert.equal(delivered, deliveredBefore + 1)
    stream.call.cancel()
  })

  it('replaces the filters of a stream, and selects votes', async () => {
    const stream = await subscribed({ deshredTransactions: { votes: { vote: true } } })
    publish({
      transactions: [decodedTransaction(1, { fixed: [1] }, { isVote: true }), decodedTransaction(2, { fixed: [1] })],
    })
    await reached(() => stream.messages.length === 1)
    stream.send(request({ deshredTransactions: { others: { vote: false } }, ping: { id: 5 } }))
    await reached(() => stream.messages.length === 2)
    publish({
      transactions: [decodedTransaction(3, { fixed: [1] }, { isVote: true }), decodedTransaction(4, { fixed: [1] })],
    })
    await reached(() => stream.messages.length === 3)
    const names = stream.messages.map((message) => updateOf(message).filters)
    assert.deepEqual(names, [['votes'], [], ['others']])
    stream.call.cancel()
  })

  it('marks a transaction whose lookup table is not known', async () => {
    const stream = await subscribed({ deshredTransactions: { all: {} } })
    publish({ transactions: [decodedTransaction(1, { fixed: [1] }, { hasUnknownTable: true })] })
    await reached(() => stream.messages.length === 1)
    const value = updateOf(stream.messages[0] as Buffer).updateOneof.value as {
      transaction: { lookupTablesUnknown?: boolean }
    }
    assert.equal(value.transaction.lookupTablesUnknown, true)
    stream.call.cancel()
  })

  it('sends a loss to every stream, and other slot updates to those that ask', async () => {
    const without = await subscribed({ deshredTransactions: { all: {} } })
    const slots = await subscribed({ slots: { s: {} } })
    const interslot = await subscribed({ slots: { i: { interslotUpdates: true } } })
    const slot = { slot: 101, parentSlot: 100 }
    reader?.onSlot({ kind: 'first-shred', ...slot })
    reader?.onSlot({ kind: 'completed', ...slot })
    reader?.onSlot({ kind: 'lost', ...slot, reason: '2 data sets lost' })
    void reader?.onBatchEnd()
    await reached(() => interslot.messages.length === 3 && slots.messages.length === 2 && without.messages.length === 1)
    const statuses = ({ messages }: { messages: Buffer[] }) =>
      messages.map((message) => {
        const { updateOneof, filters } = updateOf(message)
        const { status, deadError } = updateOneof.value as { status: number; deadError?: string }
        return [filters.join(), status, deadError]
      })
    assert.deepEqual(statuses(without), [['', SlotStatus.SLOT_DEAD, '2 data sets lost']])
    assert.deepEqual(statuses(slots), [
      ['s', SlotStatus.SLOT_COMPLETED, undefined],
      ['s', SlotStatus.SLOT_DEAD, '2 data sets lost'],
    ])
    assert.equal(interslot.messages.length, 3)
    reader?.onLost(3)
    void reader?.onBatchEnd()
    await reached(() => without.messages.length === 2)
    assert.match(String(statuses(without)[1]?.[2]), /^3 data sets after slot 100 lost: this server fell behind$/)
    for (const stream of [without, slots, interslot]) stream.call.cancel()
  })

  it('sends a changed parent to streams with a filter for slots', async () => {
    const without = await subscribed({ deshredTransactions: { all: {} } })
    const slots = await subscribed({ slots: { s: {} } })
    reader?.onSlot({ kind: 'parent-changed', slot: 102, parentSlot: 99, voidBeforeIndex: 32 })
    reader?.onSlot({ kind: 'lost', slot: 103, parentSlot: undefined, reason: 'after it' })
    void reader?.onBatchEnd()
    await reached(() => without.messages.length === 1 && slots.messages.length === 2)
    const { updateOneof } = updateOf(slots.messages[0] as Buffer)
    const { slot, parent, status, voidBeforeShredIndex } = updateOneof.value as SubscribeUpdateSlot
    assert.deepEqual([slot, parent, status, voidBeforeShredIndex], [102n, 99n, SlotStatus.SLOT_CREATED_BANK, 32])
    for (const stream of [without, slots]) stream.call.cancel()
  })

  it('tells a client that did not read how much it has lost', async () => {
    const stream = await subscribed({ deshredTransactions: { all: {} } })
    stream.call.pause()
    const transactions = Array.from({ length: 100 }, (_, at) =>
      decodedTransaction(at, { fixed: [1, 2, 3, 4, 5, 6, 7, 8] }),
    )
    let published = 0
    while (lost.client < 500) {
      publish({ slot: 200 + published, transactions })
      published += 1
      assert.ok(published < 5000, 'the bound was not reached')
      await new Promise((resolve) => setImmediate(resolve))
    }
    stream.call.resume()
    await reached(() => stream.messages.some((message) => updateOf(message).updateOneof.case === 'slot'))
    const updates = stream.messages.map(updateOf)
    const reports = updates.filter(({ updateOneof }) => updateOneof.case === 'slot')
    const lostOf = (text: string) =>
      Number(
        /^(\d+) messages of slots \d+ to \d+ lost: the client did not read; limit: decodedPendingBytes$/.exec(
          text,
        )?.[1],
      )
    const reported = reports.reduce(
      (sum, { updateOneof }) => sum + lostOf((updateOneof.value as { deadError: string }).deadError),
      0,
    )
    assert.equal(reported, lost.client)
    assert.equal(
      updates.filter(({ updateOneof }) => updateOneof.case === 'deshredTransaction').length,
      published * 100 - reported,
    )
    stream.call.cancel()
  })

  it('serves entries as the public shredstream protocol has them', async () => {
    const messages: Buffer[] = []
    const raw = (bytes: Buffer) => bytes
    const call = on.client.makeServerStreamRequest(ENTRIES, raw, raw, Buffer.alloc(0), metadata)
    call.on('error', () => {})
    call.on('data', (message: Buffer) => messages.push(message))
    await reached(() => reader !== undefined)
    const entries = Buffer.from('bincode of entries')
    while (messages.length === 0) {
      publish({ slot: 300, entries })
      await new Promise((resolve) => setImmediate(resolve))
    }
    const expected = Buffer.concat([Buffer.from([0x08, 0xac, 0x02, 0x12, entries.length]), entries])
    assert.deepEqual(messages[0], expected)
    call.cancel()
    await reached(() => reader === undefined)
  })

  it('keeps a stream of entries open while no shreds come: no node behind it is silent', async () => {
    const stream = openStream(on.client, ENTRIES, metadata)
    stream.send(Buffer.alloc(0))
    let code: number | undefined
    void stream.ended.then((ended) => void (code = ended.code))
    await reached(() => reader !== undefined)
    // One at a node, opened later and just as silent, is ended.
    node.onGrpcCall = (call) => call.sendHeaders()
    assert.equal((await openStream(on.client, SUBSCRIBE, metadata).ended).code, GrpcCode.unavailable)
    assert.equal(code, undefined)
    await reached(() => {
      publish({})
      return stream.messages.length > 0
    })
    stream.call.cancel()
    await reached(() => reader === undefined)
  })

  it('ends a stream of entries that lost some: its messages have no place for a report', async () => {
    const raw = (bytes: Buffer) => bytes
    const entries = Buffer.alloc(8 * 1024, 7)
    for (const loss of ['client', 'thread', 'too-large']) {
      const call = on.client.makeServerStreamRequest(ENTRIES, raw, raw, Buffer.alloc(0), metadata)
      const received: Buffer[] = []
      const ended = new Promise<{ code: number; details: string }>((resolve) => call.on('status', resolve))
      call.on('error', () => {})
      call.on('data', (message: Buffer) => received.push(message))
      await reached(() => reader !== undefined)
      while (received.length === 0) {
        publish({ slot: 300, entries })
        await new Promise((resolve) => setImmediate(resolve))
      }
      if (loss === 'thread') reader?.onLost(2)
      else if (loss === 'too-large')
        reader?.onSlot({ kind: 'lost', slot: 300, parentSlot: undefined, reason: 'too-large: one', isDecoded: true })
      else {
        call.pause()
        for (let slot = 301; reader !== undefined && slot < 2000; slot++) {
          publish({ slot, entries })
          await new Promise((resolve) => setImmediate(resolve))
        }
        call.resume()
      }
      const { code, details } = await ended
      assert.equal(code, GrpcCode.dataLoss, details)
      assert.match(
        details,
        { thread: /2 data sets after slot/, 'too-large': /^too-large/, client: /decodedPendingBytes/ }[loss] as RegExp,
      )
      // Every message is one of entries: slot and bytes.
      for (const message of received) assert.equal(message.length, received[0]?.length)
      await reached(() => reader === undefined)
    }
  })

  it('refuses bad requests with the filter and the reason, and does not charge them', async () => {
    const usedBefore = unitsUsed(on.gateway, token)
    const cases: [Request, RegExp][] = [
      [
        { deshredTransactions: { x: { accountInclude: ['nonsense!'] } } },
        /"x" contains "nonsense!", which is not an address/,
      ],
      [
        { deshredTransactions: Object.fromEntries(Array.from({ length: FILTERS_MAX + 1 }, (_, at) => [`f${at}`, {}])) },
        /it has 5 filters; decodedFiltersPerStream allows 4/,
      ],
    ]
    for (const [init, message] of cases) {
      const stream = openStream(on.client, DESHRED, metadata)
      stream.send(request(init))
      const status = await stream.ended
      assert.equal(status.code, GrpcCode.invalidArgument)
      assert.match(status.details, message)
    }
    assert.equal(unitsUsed(on.gateway, token), usedBefore)
  })

  it('refuses a subscription without the product, ends streams of one that loses it, and forwards nothing to a node', async () => {
    const { token } = await on.gateway.subscribe({ products: ['bundle'] })
    const refused = openStream(on.client, DESHRED, tokenMetadata(token))
    refused.send(ALL)
    assert.equal((await refused.ended).code, GrpcCode.permissionDenied)

    const other = await on.gateway.subscribe({ products: ['shreds-decoded', 'bundle'] })
    const stream = await subscribed({ deshredTransactions: { all: {} } }, tokenMetadata(other.token))
    await removeProduct(on.gateway.on, { subscription: other.id, product: 'shreds-decoded' })
    assert.equal((await stream.ended).code, GrpcCode.permissionDenied)
    assert.equal(node.calls.filter(({ method }) => String(method).includes('Subscribe')).length, 0)
  })

  it('serves a subscription that has only this product', async () => {
    const { token } = await on.gateway.subscribe({ products: ['shreds-decoded'] })
    const stream = await subscribed({ deshredTransactions: { all: {} } }, tokenMetadata(token))
    publish({ transactions: [decodedTransaction(1, { fixed: [1] })] })
    await reached(() => stream.messages.length === 1)
    stream.call.cancel()
    // It has no streams of nodes.
    const atNode = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
    assert.equal((await atNode.ended).code, GrpcCode.permissionDenied)
  })

  it('serves a subscription whose dedicated node is not assigned yet: it needs none', async () => {
    const { token } = await on.gateway.subscribe({ products: ['shreds-decoded', 'dedicated-node'] })
    const stream = await subscribed({ deshredTransactions: { all: {} } }, tokenMetadata(token))
    // It is refused at the node's streams, and at the next sweeps this one stays.
    const atNode = await openStream(on.client, SUBSCRIBE, tokenMetadata(token)).ended
    assert.match(atNode.details, /assigned/)
    let isEnded = false
    void stream.ended.then(() => (isEnded = true))
    node.onGrpcCall = (call) => call.sendHeaders()
    assert.equal((await openStream(on.client, SUBSCRIBE, metadata).ended).code, GrpcCode.unavailable)
    assert.equal(isEnded, false)
    stream.call.cancel()
  })

  it('counts the bytes of messages', async () => {
    const { token, id: subscriptionId } = await on.gateway.subscribe({ products: ['shreds-decoded'] })
    const stream = openStream(on.client, DESHRED, tokenMetadata(token))
    stream.send(ALL)
    stream.send(request({ ping: { id: 99 } }))
    await reached(() => stream.messages.length === 2)
    publish({ transactions: [decodedTransaction(1, { fixed: [1] })] })
    await reached(() => stream.messages.length === 3)
    stream.call.cancel()
    await on.gateway.access.usage.flush()
    const rows = await on.gateway.on.store.usage({ subscriptionId })
    const received = stream.messages.reduce((sum, { length }) => sum + length, 0)
    assert.equal(
      rows.reduce((sum, { bytes }) => sum + bytes, 0),
      received,
    )
  })

  it('ends streams when the server drains', async () => {
    const client = new Client(`127.0.0.1:${on.port}`, credentials.createInsecure())
    const stream = openStream(client, DESHRED, metadata)
    stream.send(ALL)
    await reached(() => stream.messages.length > 0)
    await on.server.drain(1000)
    assert.equal((await stream.ended).code, GrpcCode.unavailable)
    client.close()
  })
})
