import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runSeeds } from '../../../test/sim/run-seeds.ts'
import { sharedPermitsWorld } from '../../../test/sim/shared-permits-world.ts'
import { connections, createSharedPermits, type PermitMember } from '../../../test/support/access/shared-permits.ts'
import { repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createManualClock } from '../../core/clock.ts'
import { QuotaMemory } from './memory.ts'
import { createQuotaMemory } from './memory-layout.ts'
import { createPermitExchange } from './permit-exchange.ts'
import { permitChunk, permitShare } from './permit-sharing.ts'
import { createPermits } from './permits.ts'

/** Longer than the time after which the permits of a silent process are released, and the refresh after it. */
const SILENT_MS = 6100

async function startTwo(options: Parameters<typeof createSharedPermits>[0] = {}) {
  const shared = createSharedPermits(options)
  const [a, b] = (await shared.startAll(2)) as [PermitMember, PermitMember]
  return { ...shared, a, b }
}

describe('permits of several processes', () => {
  test('no mix of processes, delays and limits exceeds the documented slack, and after any fault all know the same sum', async (t) => {
    const outcome = await runSeeds(sharedPermitsWorld, {
      firstSeed: seedOf(t),
      seeds: repeatsOf({ short: 12, full: 400 }),
    })
    t.diagnostic(JSON.stringify(outcome.seen))
    assert.deepEqual(outcome.never, [])
  })

  test('are counted together: what one has open, the other refuses', async () => {
    const { a, b, clock } = await startTwo()
    for (let count = 0; count < 7; count++) {
      assert.equal(a.open(10), 1)
      await clock.advanceAsync(10)
    }
    assert.equal(b.open(10), 1)
    await clock.advanceAsync(10)
    assert.deepEqual([b.open(10), b.open(10), b.open(10)], [1, 1, 0])
    await clock.advanceAsync(1100)
    assert.equal(a.open(10), 0)
    const refused = b.permits.acquire('sub_a', 'wsConnections', connections(10))
    assert.deepEqual(refused, { ok: false, reason: 'over-limit', limitName: 'wsConnections', limitSize: 10 })
    await clock.advanceAsync(10)
    for (const member of [a, b]) assert.equal(member.permits.taken('sub_a').wsConnections, 10)
    assert.equal(b.open(10, 1, 'sub_b'), 1, 'another subscription')
  })

  test('a process opens one chunk before its publication, and the next when the reply has come', async () => {
    const { a, b, clock } = await startTwo()
    assert.equal(permitChunk(10, 2), 3)
    assert.deepEqual([a.open(10, 10), b.open(10, 10)], [3, 3])
    await clock.advanceAsync(10)
    assert.deepEqual([a.open(10, 10), b.open(10, 10)], [3, 3])
    await clock.advanceAsync(10)
    assert.deepEqual([a.open(10, 10), b.open(10, 10)], [0, 0])
  })

  test('permits closed and opened again while their publication is in flight are not ahead by more than a chunk', async () => {
    const { a, b, clock } = await startTwo({ latencyMs: () => 100 })
    for (let round = 0; round < 3; round++) {
      a.open(10, 3)
      await clock.advanceAsync(600)
    }
    assert.equal(a.held.length, 9)
    a.close(9)
    // The publication that there are none is on its way: what is opened now may not be counted from the nine.
    await clock.advanceAsync(260)
    assert.equal(a.open(10, 10), 3)
    assert.equal(b.open(10, 10), 3)
  })

  test('a refused attempt asks again, so the next one gets what another process has released', async () => {
    const { a, b, clock, server } = await startTwo()
    assert.equal(b.open(2), 1)
    assert.equal(a.open(2), 1)
    await clock.advanceAsync(1100)
    assert.equal(a.open(2), 0)
    await clock.advanceAsync(10)
    b.close()
    // The release is published with the next regular exchange; the sums of the other are refreshed each second, or by an attempt.
    const published = server.runs.length
    for (let ms = 0; ms < 250 && server.runs.length === published; ms++) await clock.advanceAsync(1)
    await clock.advanceAsync(5)
    assert.equal(a.open(2), 0, 'the sum is old')
    await clock.advanceAsync(10)
    assert.equal(a.open(2), 1)
  })

  test('many permits opened at once are one exchange, and refused attempts no more than one each two milliseconds', async () => {
    const { a, b, clock, server } = await startTwo({ latencyMs: () => 0 })
    server.runs.length = 0
    assert.equal(a.open(1000, 200), 200)
    await clock.advanceAsync(5)
    assert.ok(server.runs.length <= 2, `${server.runs.length}`)
    b.open(1000, 1)
    await clock.advanceAsync(1000)
    server.runs.length = 0
    for (let ms = 0; ms < 100; ms++) {
      b.open(100, 50)
      await clock.advanceAsync(1)
    }
    assert.ok(server.runs.length <= 52, `${server.runs.length}`)
  })

  test('those of a killed process are free after six seconds, not before five', async () => {
    const { a, b, clock } = await startTwo()
    for (let count = 0; count < 9; count++) {
      a.open(10)
      await clock.advanceAsync(10)
    }
    b.open(10)
    await clock.advanceAsync(1000)
    a.cut(true)
    await clock.advanceAsync(3500)
    assert.equal(b.open(10), 0)
    await clock.advanceAsync(SILENT_MS - 3500)
    assert.equal(b.permits.taken('sub_a').wsConnections, 1)
    assert.equal(b.open(10), 1)
  })

  test('those of a process that ends are free at once', async () => {
    const { a, b, clock } = await startTwo()
    a.open(1)
    await clock.advanceAsync(300)
    const closing = a.ledger[Symbol.asyncDispose]()
    await clock.advanceAsync(100)
    await closing
    b.open(1)
    await clock.advanceAsync(10)
    assert.equal(b.permits.taken('sub_a').wsConnections, 1)
  })

  test('a process cut off keeps its own, and opens further ones up to its share', async () => {
    const { a, b, clock } = await startTwo()
    for (let count = 0; count < 8; count++) {
      a.open(10)
      await clock.advanceAsync(10)
    }
    a.cut(true)
    b.cut(true)
    await clock.advanceAsync(1100)
    assert.equal(permitShare(10, 2), 5)
    assert.equal(a.open(10, 20), 0)
    assert.equal(b.open(10, 20), 5)
    a.close(4)
    assert.equal(a.open(10, 20), 1, 'up to its share')
    assert.deepEqual([permitShare(1, 3), permitShare(0, 3), permitShare(10, 3)], [1, 0, 3])
    a.cut(false)
    b.cut(false)
    await clock.advanceAsync(2200)
    assert.equal(a.permits.taken('sub_a').wsConnections, 10)
    assert.equal(a.open(10), 0)
  })

  test('a server that has lost its data gets everything again, and until then nobody opens more than a share', async () => {
    const { a, b, clock, model } = await startTwo()
    for (let count = 0; count < 10; count++) {
      a.open(10)
      await clock.advanceAsync(10)
    }
    model.clear()
    b.open(10)
    await clock.advanceAsync(1100)
    assert.equal(b.permits.taken('sub_a').wsConnections, 11, 'published again with the next heartbeat')
    assert.equal(b.open(10), 0)
    // Everything is closed: with the share only half of the limit is open to one process, until the data is old enough.
    a.close(10)
    await clock.advanceAsync(300)
    let opened = 1
    for (let attempt = 0; attempt < 20; attempt++) {
      opened += b.open(10)
      await clock.advanceAsync(10)
    }
    assert.equal(opened, 5)
    await clock.advanceAsync(5000)
    assert.equal(b.open(10), 1)
  })

  test('the first process on an empty server keeps the share of before, until the others have had time to connect', async () => {
    const { a, b, clock, model, server } = await startTwo()
    server.isUp = false
    b.cut(true)
    await clock.advanceAsync(1500)
    model.clear()
    server.isUp = true
    await clock.advanceAsync(1500)
    let opened = 0
    for (let attempt = 0; attempt < 20; attempt++) {
      opened += a.open(10)
      await clock.advanceAsync(10)
    }
    assert.equal(opened, 5)
  })

  test('a process that was silent for too long opens nothing before it knows what the others have opened meanwhile', async () => {
    const { a, b, clock } = await startTwo({ latencyMs: () => 50 })
    for (let count = 0; count < 8; count++) {
      a.open(10)
      await clock.advanceAsync(300)
    }
    a.cut(true)
    await clock.advanceAsync(8000)
    for (let count = 0; count < 10; count++) {
      b.open(10)
      await clock.advanceAsync(300)
    }
    assert.deepEqual([a.held.length, b.held.length], [8, 10])
    a.cut(false)
    for (let ms = 0; ms < 1500 && !a.ledger.state().isUp; ms++) await clock.advanceAsync(1)
    assert.equal(a.ledger.state().isUp, true)
    assert.equal(a.open(10, 5), 0)
    await clock.advanceAsync(1500)
    assert.equal(a.permits.taken('sub_a').wsConnections, 18)
  })

  test('a process without permits does not remember those of others', async () => {
    const { a, b, clock } = await startTwo()
    for (let count = 0; count < 10; count++) {
      a.open(10)
      await clock.advanceAsync(10)
    }
    b.open(10)
    await clock.advanceAsync(10)
    assert.equal(b.open(10), 0)
    b.close()
    await clock.advanceAsync(300)
    a.close(10)
    await clock.advanceAsync(300)
    assert.equal(b.open(10), 1, 'the first attempt')
  })

  test('a raised limit gives more at once, a lowered one none until enough are closed in all processes', async () => {
    const { a, b, clock } = await startTwo()
    for (const member of [a, b, a, b]) {
      assert.equal(member.open(4), 1)
      await clock.advanceAsync(10)
    }
    await clock.advanceAsync(1000)
    assert.equal(a.open(4), 0)
    assert.equal(a.open(40, 5), 5)
    await clock.advanceAsync(1000)
    assert.deepEqual([a.open(4), b.open(4)], [0, 0])
    a.close(6)
    await clock.advanceAsync(1300)
    assert.equal(b.open(4), 1)
  })

  test('the cell of an account stays until the server knows that its permits are closed', async () => {
    const { a, clock } = await startTwo()
    a.open(10)
    await clock.advanceAsync(10)
    a.close()
    a.ledger.sweep(clock.monotonicMs())
    assert.notEqual(a.memory.find('sub_a'), 0)
    await clock.advanceAsync(300)
    a.ledger.sweep(clock.monotonicMs())
    assert.equal(a.memory.find('sub_a'), 0)
  })

  test('without a limit nothing is refused, and the permits are counted', async () => {
    const { a, b, clock, server } = await startTwo()
    const unlimited = { ...connections(1), grpcStreams: null }
    for (let count = 0; count < 50; count++) assert.equal(a.permits.acquire('sub_a', 'grpcStreams', unlimited).ok, true)
    b.permits.acquire('sub_a', 'grpcStreams', unlimited)
    await clock.advanceAsync(1500)
    assert.equal(b.permits.taken('sub_a').grpcStreams, 51)
    server.isUp = false
    await clock.advanceAsync(1500)
    assert.equal(b.permits.acquire('sub_a', 'grpcStreams', unlimited).ok, true)
  })

  test('those of a thread that died are released in the other processes too', async () => {
    const buffer = createQuotaMemory({ accountsMax: 4, threads: 2 })
    const [main, thread] = [new QuotaMemory(buffer, 0), new QuotaMemory(buffer, 1)]
    const clock = createManualClock()
    const published: string[] = []
    let isBusy = false
    const exchange = createPermitExchange(
      { keyPrefix: 'test', processId: 'p', silenceMsMax: 5000, processesAssumed: 1 },
      {
        memory: main,
        clock,
        onFailed: () => assert.ok(isBusy),
        redis: {
          run: (_script, _keys, args) => {
            if (isBusy) return Promise.resolve({ ok: false, reason: 'busy', message: 'busy' })
            published.push(args.slice(3).join(' '))
            return Promise.resolve({ ok: true, reply: [0, 0, 0] })
          },
        },
      },
    )
    exchange.joined({ processes: 2, isNew: false, ageMs: 60_000 })
    const permits = createPermits(thread, () => exchange.sendRequested())
    assert.ok(permits.acquire('sub_a', 'wsConnections', connections(2)).ok)
    await clock.advanceAsync(5)
    await main.permitTable.reclaim(1, main.cellsEnd)
    isBusy = true
    exchange.send()
    await clock.advanceAsync(5)
    isBusy = false
    exchange.send()
    await clock.advanceAsync(5)
    assert.deepEqual(published, ['sub_a 1 0 0', 'sub_a '], 'a failed publication is repeated')
    assert.equal(main.permitTable.hasAny(main.find('sub_a')), false)
  })

  /** How a server may lose what a process has published. */
  const losses = {
    'its data deleted': ({ model }: Rig) => model.clear(),
    'restarted empty': async ({ model, server, clock }: Rig) => {
      server.isUp = false
      await clock.advanceAsync(1500)
      model.clear()
      server.isUp = true
    },
    'its data deleted, and the connection lost before the reply to the next heartbeat': async (rig: Rig) => {
      const { model, server, clock } = rig
      model.clear()
      server.runs.length = 0
      for (let ms = 0; ms < 1500 && !server.runs.includes(3); ms++) await clock.advanceAsync(1)
      server.isUp = false
      await clock.advanceAsync(1500)
      server.isUp = true
    },
  }
  for (const [what, lose] of Object.entries(losses)) {
    test(`100,000 subscriptions are published again in bounded batches: the server has ${what}`, async (t) => {
      const subscriptions = 100_000
      const rig = createSharedPermits({ accountsMax: subscriptions, latencyMs: () => 3 })
      const { start, clock, server } = rig
      const a = await start()
      for (let at = 0; at < subscriptions; at++) a.permits.acquire(`sub_${at}`, 'wsConnections', connections(10))
      await clock.advanceAsync(4000)
      await lose(rig)
      server.runs.length = 0
      const fromMs = performance.now()
      await clock.advanceAsync(4000)
      t.diagnostic(`${server.runs.length} runs in ${Math.round(performance.now() - fromMs)} ms`)
      const sent = server.runs.reduce((sum, args) => sum + Math.max(0, args - 3) / 2, 0)
      assert.ok(sent >= subscriptions, `${sent}`)
      assert.ok(Math.max(...server.runs) <= 3 + 2 * 256, `${Math.max(...server.runs)}`)
    })
  }
})

type Rig = ReturnType<typeof createSharedPermits>
