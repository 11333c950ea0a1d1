import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { permitChunk, permitShare } from '../../src/access/quota/permit-sharing.ts'
import { compileTerms } from '../../src/access/terms.ts'
import type { GatewayMachine, Outcome } from '../support/gateway/machine.ts'
import type { DataMachine } from '../support/machine/data-machine.ts'
import { makeNetwork, type Network, type Remote, startRemote } from '../support/machine/namespaces.ts'
import { isFull } from '../support/process/property.ts'

const CHILD = join(import.meta.dirname, '../support/gateway/two-machines-child.ts')
/** The guaranteed time for a change to reach another machine. */
const SPREAD_MS = 2000
const HAMMER_MS = 4000
/** Long enough that Redis no longer counts a silent machine, which takes five seconds; in full also longer than the statement timeout. */
const CUT_MS = isFull ? 45_000 : 7000
const INGEST_CUT_MS = isFull ? 45_000 : 4000
/** The time from the reconnect until the machine has received all changes. */
const HEARD_MS = 15_000
/** The interval between two checks, long enough that checks are not the load of the machines. */
const LOOK_MS = 40
const CUSTOMER = 'acme'

type Position = 'a' | 'b' | 'data'
type Machine = Remote<GatewayMachine>
type Subscription = {
  readonly name: string
  readonly token: string
  readonly login: { username: string; password: string }
}

/** A limit small enough that two machines meet it at once. One call costs one unit. */
const SMALL = { unitsPerSecond: 20, sendsPerSecond: 10, batchItems: 10 }
const { buckets, unitsBucket } = compileTerms({ ...BUILT_IN_PLANS.professional, ...SMALL })
const bucket = buckets[unitsBucket]
assert.ok(bucket !== undefined)
const SMALL_FLAGS = ['--units-per-second', '20', '--sends-per-second', '10', '--batch-items', '10']
const FREE_FLAGS = ['--units-per-second', 'unlimited']

async function sluice(at: Machine, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await at.call('sluice', ...words)
  assert.equal(code, 0, `sluice ${words[0]} ${words[1]}: ${stderr}`)
  return stdout
}

async function createSub(at: Machine, name: string, ...flags: string[]): Promise<Subscription> {
  const words = ['--customer', CUSTOMER, '--plan', 'professional', '--products', 'bundle,indexer', ...flags]
  const made = JSON.parse(await sluice(at, 'sub', 'create', name, ...words, '--json', '--print-token'))
  return { name, token: made.token, login: made.indexer }
}

/**
 * How long it took from now on, in milliseconds. A check that started in time counts even if its response is late: a busy machine
 * may take seconds over one.
 */
async function took(what: string, holds: () => Promise<boolean>, withinMs: number): Promise<number> {
  const fromMs = performance.now()
  for (;;) {
    const askedMs = performance.now() - fromMs
    if (await holds()) return Math.round(performance.now() - fromMs)
    assert.ok(askedMs < withinMs, `${Math.round(askedMs)} ms later still waiting until ${what}`)
    await pause(LOOK_MS)
  }
}

function openNetwork(): Network<Position> | string {
  try {
    return makeNetwork<Position>('data', ['a', 'b'])
  } catch (error) {
    return (error as { stderr?: string }).stderr?.trim() || String(error)
  }
}

test('two gateways on one PostgreSQL, one Redis and one ClickHouse, each on a machine of its own', async (t) => {
  const made = openNetwork()
  if (typeof made === 'string') {
    t.skip(`SKIPPED: network namespaces cannot be made here: ${made}`)
    return
  }
  using network = made
  await using data = await startRemote<DataMachine>(network.namespaceOf('data'), CHILD, 'data')
  // Both at once on an empty database, as with one command of the operator.
  const starting = [
    startRemote<GatewayMachine>(network.namespaceOf('a'), CHILD, 'ingesting'),
    startRemote<GatewayMachine>(network.namespaceOf('b'), CHILD, 'answering'),
  ] as const
  await Promise.allSettled(starting)
  await using a = await starting[0]
  await using b = await starting[1]
  const both = [a, b] as const
  const statusAt = async (at: Machine, { token, name }: { token: string; name: string }) =>
    (await at.call('ask', token, name)).status
  const partsOf = async (at: Machine) => (await at.call('health')).reasons.map(({ part }) => part)
  const forwardedFor = async (name: string) => {
    const counts = await Promise.all(both.map((at) => at.call('forwarded')))
    return counts.map((count) => count[name] ?? 0)
  }
  const forwarded = async (name: string) => (await forwardedFor(name)).reduce((sum, count) => sum + count, 0)

  /** Units booked equal units forwarded to the nodes exactly. */
  async function assertBooked(names: readonly string[]): Promise<string> {
    const units: Record<string, number> = {}
    for (const name of names) units[name] = await forwarded(name)
    const booked = async () => {
      const all = await data.call('booked')
      return Object.fromEntries(names.map((name) => [name, all[name] ?? 0]))
    }
    await took('all is booked', async () => isDeepStrictEqual(await booked(), units), 20_000).catch(() => {})
    // Longer than the interval between two writes: nothing is added twice.
    await pause(1500)
    assert.deepEqual(await booked(), units)
    return JSON.stringify(units)
  }

  function assertServed(outcome: Outcome, what: string): void {
    assert.deepEqual(outcome.failed, [], what)
    assert.equal(outcome.refused, 0, `${what}: refused`)
    assert.ok(outcome.responded > 10, `${what}: only ${outcome.responded} calls got a response`)
  }

  await sluice(a, 'customer', 'add', CUSTOMER)

  await t.test(
    'a change made on one machine applies on the other within two seconds, in both directions',
    async (t) => {
      for (const [here, there, way] of [
        [a, b, 'a to b'],
        [b, a, 'b to a'],
      ] as const) {
        const sub = await createSub(here, `spread-${way.replaceAll(' ', '-')}`, ...SMALL_FLAGS)
        const { name } = sub
        const created = await took('the token opens', async () => (await statusAt(there, sub)) === 200, SPREAD_MS)
        await sluice(here, 'sub', 'limit', name, '--units-per-second', '50')
        const isFifty = async () => (await there.call('ask', sub.token, name)).limit === 500
        const limited = await took('the budget is the new one', isFifty, SPREAD_MS)
        const rotation = JSON.parse(await sluice(here, 'token', 'rotate', name, '--yes', '--json', '--print-token'))
        const isRotated = async () =>
          (await statusAt(there, { name, token: rotation.token })) === 200 && (await statusAt(there, sub)) === 401
        const rotated = await took('the new token opens and the old does not', isRotated, SPREAD_MS)
        await sluice(here, 'sub', 'suspend', name, '--yes')
        const isSuspended = async () => (await statusAt(there, { name, token: rotation.token })) === 401
        const suspended = await took('it is refused', isSuspended, SPREAD_MS)
        t.diagnostic(`${way}: create ${created} ms, limit ${limited} ms, rotate ${rotated} ms, suspend ${suspended} ms`)
      }
    },
  )

  await t.test(
    'one budget: both machines at once admit no more than decision 0004 allows, and all units are booked',
    async (t) => {
      const sub = await createSub(a, 'budget', ...SMALL_FLAGS)
      for (const at of both) await took('it is known', async () => (await statusAt(at, sub)) === 200, SPREAD_MS)
      const fromMs = performance.now()
      const hammer = { token: sub.token, callers: 3, everyMs: 0, batch: SMALL.batchItems }
      for (const at of both) await at.call('start', sub.name, hammer)
      await pause(HAMMER_MS)
      for (const at of both)
        await took('the limit is met', async () => ((await at.call('outcome', sub.name))?.limited ?? 0) > 0, 20_000)
      const outcomes = await Promise.all(both.map((at) => at.call('stop', sub.name)))
      const seconds = (performance.now() - fromMs) / 1000
      const units = await forwardedFor(sub.name)
      const sum = units.reduce((each, other) => each + other, 0)
      const most = bucket.capacity + bucket.perSecond * seconds + 2 * bucket.chunk
      t.diagnostic(
        `${sum} units (a ${units[0]}, b ${units[1]}) in ${seconds.toFixed(1)} s; at most ${Math.floor(most)}; ` +
          `${outcomes.map(({ limited }) => limited).join(' + ')} calls refused by the limit`,
      )
      // The sum includes the two calls before the measurement.
      assert.ok(sum <= most + 2, `${sum} units of a budget of ${most}`)
      assert.ok(sum >= bucket.capacity, `only ${sum} units: the limit was not reached`)
      for (const [at, outcome] of outcomes.entries()) {
        assertServed(outcome, `machine ${at}`)
        assert.ok(outcome.limited > 0, `machine ${at} was never refused`)
      }
      t.diagnostic(`booked: ${await assertBooked([sub.name])}`)
    },
  )

  await t.test(
    'one machine cut off and reconnected: it serves from memory with its share, and no usage is lost',
    async (t) => {
      const free = await createSub(a, 'cut-free', ...FREE_FLAGS)
      const small = await createSub(a, 'cut-small', ...SMALL_FLAGS)
      const gone = await createSub(a, 'cut-revoked', ...FREE_FLAGS)
      for (const at of both)
        for (const sub of [free, small, gone])
          await took('it is known', async () => (await statusAt(at, sub)) === 200, SPREAD_MS)
      for (const at of both) await at.call('start', free.name, { token: free.token, callers: 2, everyMs: 20, batch: 1 })
      const smallBefore = (await forwardedFor(small.name))[1] ?? 0

      network.pull('b')
      t.after(() => network.plug('b'))
      const cutMs = performance.now()
      await b.call('start', small.name, { token: small.token, callers: 2, everyMs: 20, batch: SMALL.batchItems })
      let reported: string[] = []
      const reports = async () => {
        reported = await partsOf(b)
        return reported.includes('quota') && reported.includes('store')
      }
      const reportedMs = await took('it reports what it lost', reports, 15_000)
      await sluice(a, 'token', 'revoke', gone.name, '--yes')
      await took('the revoked token is refused on a', async () => (await statusAt(a, gone)) === 401, SPREAD_MS)
      // Documented: a machine that is cut off does not receive changes.
      assert.equal(await statusAt(b, gone), 200)
      await pause(Math.max(0, CUT_MS - (performance.now() - cutMs)))
      assert.equal(await statusAt(b, gone), 200)
      await took('a is healthy', async () => (await partsOf(a)).length === 0, HEARD_MS)
      const smallOutcome = await b.call('stop', small.name)
      const seconds = (performance.now() - cutMs) / 1000
      const share = ((await forwardedFor(small.name))[1] ?? 0) - smallBefore

      network.plug('b')
      const revokedMs = await took(
        'the revoked token is refused on b',
        async () => (await statusAt(b, gone)) === 401,
        HEARD_MS,
      )
      const healthyMs = await took('b is healthy', async () => (await b.call('health')).state === 'ok', HEARD_MS)
      const outcomes = await Promise.all(both.map((at) => at.call('stop', free.name)))
      for (const [at, outcome] of outcomes.entries()) {
        assertServed(outcome, `machine ${at}`)
        assert.equal(outcome.limited, 0, 'nothing limits this customer')
      }
      assertServed(smallOutcome, 'machine b, small budget')
      // One chunk before it detected the cut; from then on half of the capacity and half of the rate.
      const most = bucket.chunk + bucket.capacity / 2 + (bucket.perSecond / 2) * seconds
      assert.ok(share <= most, `${share} units of a share of ${most}`)
      assert.ok(smallOutcome.limited > 0, 'the share was used up')
      t.diagnostic(
        `cut for ${seconds.toFixed(1)} s: reported after ${reportedMs} ms (${reported.join(', ')}); b admitted ${share} of at most ${Math.floor(most)} units; ` +
          `free customer: ${outcomes.map(({ responded }) => responded).join(' + ')} calls; after the cable was back: revoked token refused after ${revokedMs} ms, healthy after ${revokedMs + healthyMs} ms`,
      )
      t.diagnostic(`booked: ${await assertBooked([free.name, small.name, gone.name])}`)
    },
  )

  await t.test(
    'one limit of connections: both machines at once, one after the other, and one of them cut off',
    async (t) => {
      const limit = 10
      const sub = await createSub(a, 'sockets', ...FREE_FLAGS, '--ws-connections', String(limit))
      for (const at of both) await took('it is known', async () => (await statusAt(at, sub)) === 200, SPREAD_MS)
      const connect = (at: Machine, attempts: number) => at.call('connect', sub.token, attempts)
      const isOpen = (at: Machine, count: number) => async () => (await connect(at, 1)) >= count
      const most = limit + 2 * permitChunk(limit, 2)
      const atOnce = await Promise.all(both.map((at) => connect(at, 2 * limit)))
      assert.ok(atOnce.reduce((sum, count) => sum + count) <= most, `${atOnce.join(' + ')} open, ${most} at most`)
      for (const at of both) await at.call('disconnect')
      const allMs = await took('one machine has all', isOpen(a, limit), 10_000)
      assert.equal(await connect(a, limit), limit)
      // The first ones on a machine that does not know the sum yet; it does with the reply.
      await connect(b, 1)
      const above = await took('b knows the sum', async () => (await connect(b, 1)) === (await connect(b, 1)), 10_000)
      assert.ok((await connect(b, limit)) <= permitChunk(limit, 2))
      for (const at of both) await at.call('disconnect')
      await took('b has eight', isOpen(b, 8), 10_000)
      network.pull('b')
      t.after(() => network.plug('b'))
      await took('b uses its share', async () => (await partsOf(b)).includes('quota'), 15_000)
      assert.ok((await connect(b, limit)) <= limit)
      const freeMs = await took('a has all, without those of b', isOpen(a, limit), 20_000)
      await b.call('disconnect')
      assert.equal(await connect(b, 2 * limit), permitShare(limit, 2))
      network.plug('b')
      await took('b is healthy', async () => (await b.call('health')).state === 'ok', HEARD_MS)
      await took('b is refused', async () => (await connect(b, 1)) === permitShare(limit, 2), 10_000)
      for (const at of both) await at.call('disconnect')
      t.diagnostic(
        `${atOnce.join(' + ')} of ${limit} at once, ${most} at most; all on one after ${allMs} ms; the other knows after ${above} ms; free after ${freeMs} ms`,
      )
    },
  )

  await t.test(
    'one machine ingests, the other serves queries; while the writer is cut off coverage is never ahead, and no gap remains',
    async (t) => {
      const sub = await createSub(b, 'sql', ...FREE_FLAGS)
      await data.call('setReaders', [{ user: sub.login.username, password: sub.login.password }])
      const basic = Buffer.from(`${sub.login.username}:${sub.login.password}`).toString('base64')
      const headers = { authorization: `Basic ${basic}`, 'x-token': sub.token }
      const ask = async (sql: string): Promise<string[]> => {
        const { status, text } = await b.call('query', headers, sql)
        assert.equal(status, 200, text)
        return text.trim().split('\t')
      }
      const coverage = async () => {
        const [from, to, gaps] = await ask(
          "SELECT from_slot, to_slot, open_gaps FROM coverage WHERE table_name = 'blocks'",
        )
        return { from: Number(from), to: Number(to), gaps: Number(gaps) }
      }
      /** Every slot of this chain has a block, so what is called complete can be counted. */
      async function assertWhole(): Promise<{ from: number; to: number }> {
        const { from, to, gaps } = await coverage()
        const [count, distinct] = await ask(
          `SELECT count(), uniqExact(slot) FROM blocks WHERE slot >= ${from} AND slot <= ${to}`,
        )
        assert.deepEqual([Number(count), Number(distinct), gaps], [to - from + 1, to - from + 1, 0])
        return { from, to }
      }
      await took(
        'its credentials are known',
        async () => (await b.call('query', headers, 'SELECT 1')).status === 200,
        HEARD_MS,
      )
      await took('blocks are there', async () => (await coverage()).to > 0, 30_000)
      await assertWhole()
      const tip = () => a.call('tipSlot')
      const isCaughtUp = async () => (await coverage()).to > (await tip()) - 20
      await took('ingest keeps up', isCaughtUp, 30_000)

      network.pull('a')
      t.after(() => network.plug('a'))
      const cutMs = performance.now()
      // Packets in flight may still arrive at the server.
      await pause(1000)
      const held = await coverage()
      await pause(INGEST_CUT_MS - 1000)
      assert.deepEqual(await coverage(), held)
      await assertWhole()
      const { coverage: reported } = await b.call('query', headers, 'SELECT 1')
      assert.equal(reported, held.to, 'a response states up to which slot the tables are complete')
      const behind = (await tip()) - held.to
      assert.ok(behind > 5, `the chain went on: ${behind} slots`)
      const cutFor = Math.round(performance.now() - cutMs)

      network.plug('a')
      const target = await tip()
      const caughtUpMs = await took('it has caught up', async () => (await coverage()).to >= target, 120_000)
      const { from, to } = await assertWhole()
      const [inTables] = (await data.call('clickhouse', 'SELECT count() FROM solana.blocks')).trim().split('\n')
      t.diagnostic(
        `cut for ${cutFor} ms at slot ${held.to}, ${behind} slots behind; caught up ${caughtUpMs} ms after the cable was back; slots ${from} to ${to} complete, ${inTables} blocks in all`,
      )
      const { code, stderr } = await b.call('sluice', 'indexer', 'backfill', '1', '2')
      assert.notEqual(code, 0)
      assert.match(stderr, /indexer\.ingest\.enabled is false/)
    },
  )

  await t.test(
    'Redis killed and restarted, PostgreSQL stopped and restarted: no customer call fails, and usage is exact',
    async (t) => {
      const free = await createSub(a, 'servers-free', ...FREE_FLAGS)
      // Far less than either machine's share of the budget.
      const gentle = await createSub(a, 'servers-gentle', ...SMALL_FLAGS)
      for (const at of both) {
        for (const sub of [free, gentle])
          await took('it is known', async () => (await statusAt(at, sub)) === 200, SPREAD_MS)
        await at.call('start', free.name, { token: free.token, callers: 2, everyMs: 10, batch: 1 })
        await at.call('start', gentle.name, { token: gentle.token, callers: 1, everyMs: 500, batch: 1 })
      }
      const facts: string[] = []
      for (const [server, part] of [
        ['redis', 'quota'],
        ['postgres', 'store'],
      ] as const) {
        await data.call('stop', server)
        const isReported = async () => (await Promise.all(both.map(partsOf))).every((parts) => parts.includes(part))
        const reportedMs = await took(`both report ${part} as unavailable`, isReported, 15_000)
        await pause(1000)
        await data.call('start', server)
        const isComplete = async () => (await Promise.all(both.map(partsOf))).every((parts) => parts.length === 0)
        const wholeMs = await took('both are healthy', isComplete, 20_000)
        facts.push(`${server} outage reported after ${reportedMs} ms, recovery after ${wholeMs} ms`)
      }
      for (const at of both) {
        const hasCalled = async () => ((await at.call('outcome', gentle.name))?.responded ?? 0) > 10
        await took('the gentle customer has made enough calls', hasCalled, 20_000)
      }
      for (const sub of [free, gentle]) {
        const outcomes = await Promise.all(both.map((at) => at.call('stop', sub.name)))
        for (const [at, outcome] of outcomes.entries()) {
          assertServed(outcome, `${sub.name} at machine ${at}`)
          assert.equal(outcome.limited, 0, `${sub.name} at machine ${at} was refused`)
        }
        facts.push(`${sub.name}: ${outcomes.map(({ responded }) => responded).join(' + ')} calls, none failed`)
      }
      t.diagnostic(facts.join('; '))
      t.diagnostic(`booked: ${await assertBooked([free.name, gentle.name])}`)
    },
  )

  await t.test('neither process has crashed, and both end cleanly', async () => {
    for (const at of both) {
      assert.equal(await at.call('isAlive'), true)
      assert.equal(await at.call('end'), 0)
    }
  })
})
