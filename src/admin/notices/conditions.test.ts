import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Calendar, monthOf } from '../../access/quota/calendar.ts'
import { createLedger, monthUnits } from '../../access/quota/ledger.ts'
import { QuotaMemory } from '../../access/quota/memory.ts'
import { createQuotaMemory } from '../../access/quota/memory-layout.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { createProcessConditions, customerConditions, type Observed } from './conditions.ts'
import { CONDITIONS_MAX, Outbox } from './outbox.ts'

const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 10, 16)

const QUIET: Observed = {
  nodes: [],
  destinations: undefined,
  hasShreds: true,
  certificates: new Map(),
  backupAtMs: NOW,
}

/** Without the conditions that are undecided. */
function setUp() {
  const options = { nodeDownSeconds: 60, destinationSilentSeconds: 300, certificateDays: 14, backupDays: 7 }
  const conditions = createProcessConditions(options, (id) => `name-of-${id}`)
  return (observed: Partial<Observed>, seconds: number) =>
    conditions({ ...QUIET, ...observed }, NOW + seconds * 1000, seconds * 1000).filter(
      ({ isUndecided = false }) => !isUndecided,
    )
}

test('a node counts as down after its time, and begins anew after it was healthy', () => {
  const at = setUp()
  const failing = { nodes: [{ name: 'fra-1', state: 'failing', reason: 'refused', slot: 0 }] } as const
  assert.deepEqual(at(failing, 0), [])
  assert.deepEqual(at(failing, 59), [])
  assert.deepEqual(
    at(failing, 60).map(({ key, message }) => [key, message]),
    [['node.down fra-1', 'node fra-1 is failing: refused']],
  )
  assert.deepEqual(at({ nodes: [{ name: 'fra-1', state: 'healthy', reason: '', slot: 9 }] }, 61), [])
  assert.deepEqual(at(failing, 62), [])
  assert.deepEqual(at(failing, 121), [])
  assert.equal(at(failing, 122).length, 1)
  assert.deepEqual(at({ nodes: [{ name: 'fra-1', state: 'drained', reason: 'by the operator', slot: 9 }] }, 500), [])
})

test('a destination is silent when nothing could be sent while shreds arrive', () => {
  const at = setUp()
  const sent = (packets: number, hasShreds = true) => ({
    hasShreds,
    destinations: [{ subscriptionId: 'sub_1', state: 'sending', packets, lastFault: 'ECONNREFUSED' }],
  })
  assert.deepEqual(at(sent(5), 0), [])
  assert.deepEqual(at(sent(5), 299), [])
  assert.deepEqual(
    at(sent(5), 300).map(({ kind, data }) => [kind, data]),
    [
      [
        'shreds.destination-silent',
        { subscription: 'name-of-sub_1', subscription_id: 'sub_1', last_fault: 'ECONNREFUSED' },
      ],
    ],
  )
  assert.deepEqual(at(sent(6), 310), [])
  assert.deepEqual(at(sent(6, false), 900), [], 'no shreds arrive, so nothing can be sent')
  assert.deepEqual(at(sent(6), 1000), [])
})

test('a destination that refuses the single packets of its probes is silent', () => {
  const at = setUp()
  const seen = (state: string, packets: number) => ({
    destinations: [{ subscriptionId: 'sub_1', state, packets, lastFault: 'ECONNREFUSED' }],
  })
  assert.deepEqual(at(seen('sending', 5), 0), [])
  const tried = (second: number) => seen(second % 30 === 0 ? 'trying' : 'paused', 5 + second / 15)
  for (let second = 15; second < 300; second += 15) assert.deepEqual(at(tried(second), second), [])
  for (const second of [300, 315])
    assert.deepEqual(
      at(tried(second), second).map(({ key }) => key),
      ['shreds.destination-silent sub_1'],
    )
  assert.deepEqual(at(seen('sending', 900), 330), [])
})

test('certificates and backups', () => {
  const at = setUp()
  const soon = new Map([
    ['rpc', NOW + 13 * DAY_MS],
    ['ws', NOW + 15 * DAY_MS],
    ['grpc', NOW - 1],
  ])
  assert.deepEqual(
    at({ certificates: soon }, 0).map(({ message }) => message),
    [
      'the certificate of the listener rpc ends at 2026-11-29T00:00:00.000Z',
      'the certificate of the listener grpc has ended at 2026-11-15T23:59:59.999Z',
    ],
  )
  assert.deepEqual(at({ backupAtMs: NOW - 7 * DAY_MS + 1 }, 0), [])
  assert.equal(at({ backupAtMs: NOW - 7 * DAY_MS }, 0)[0]?.kind, 'backup.missing')
})

test('a lagging node counts as down; what is removed and comes back begins anew', () => {
  const at = setUp()
  const lagging = { nodes: [{ name: 'fra-1', state: 'lagging', reason: '300 slots', slot: 9 }] } as const
  const silent = { destinations: [{ subscriptionId: 'sub_1', state: 'sending', packets: 5, lastFault: null }] }
  at({ ...lagging, ...silent }, 0)
  assert.deepEqual(
    at({ ...lagging, ...silent }, 300).map(({ key }) => key),
    ['node.down fra-1', 'shreds.destination-silent sub_1'],
  )
  assert.deepEqual(at({ destinations: [] }, 301), [])
  assert.deepEqual(at({ ...lagging, ...silent }, 302), [])
})

test('0 days switch the notices of certificates and backups off', () => {
  const options = { nodeDownSeconds: 60, destinationSilentSeconds: 300, certificateDays: 0, backupDays: 0 }
  const conditions = createProcessConditions(options, (id) => id)
  const over = { ...QUIET, certificates: new Map([['rpc', NOW - 1]]), backupAtMs: 0 }
  assert.deepEqual(conditions(over, NOW, 0), [])
})

type Slices = Parameters<typeof customerConditions>[2]['slices']

function customers(
  list: { name: string; until?: number; used?: number; state?: string; limit?: number | null }[],
  slices: Slices = { isSpent: () => true, yield: async () => {} },
  onUnits: () => void = () => {},
) {
  const customer = { id: 'cus_1', name: 'acme', state: 'active' }
  const subscriptions = list.map(({ name, until, state = 'active' }) => ({
    id: `sub_${name}`,
    name,
    customerId: 'cus_1',
    plan: 'pro',
    overrides: {},
    state,
    validUntil: until ?? null,
  }))
  const subscriptionOf = new Map(subscriptions.map((subscription) => [subscription.id, subscription]))
  const byId = new Map(list.map((row) => [`sub_${row.name}`, row]))
  return customerConditions(
    { endsDays: [14, 3], usagePercents: [80, 100] },
    {
      snapshot: () =>
        ({
          subscriptions: () => subscriptions,
          subscription: (id: string) => subscriptionOf.get(id),
          customer: () => customer,
        }) as never,
      *monthUnits() {
        for (const { name, used = 0 } of list) {
          onUnits()
          if (used > 0) yield { subscriptionId: `sub_${name}`, units: used, month: monthOf(NOW) }
        }
      },
      limitsOf: (of) => ({ unitsPerMonth: byId.get((of as unknown as { id: string }).id)?.limit ?? null }),
    },
    { nowMs: NOW, slices },
  )
}

test('subscriptions that end soon, by the closest threshold', async () => {
  const found = await customers([
    { name: 'far', until: NOW + 15 * DAY_MS },
    { name: 'soon', until: NOW + 14 * DAY_MS },
    { name: 'close', until: NOW + DAY_MS },
    { name: 'ended', until: NOW - 1 },
    { name: 'open' },
    { name: 'suspended', until: NOW + DAY_MS, state: 'suspended' },
  ])
  assert.deepEqual(
    found.map(({ data }) => [data['subscription'], data['days'], data['customer']]),
    [
      ['soon', 14, 'acme'],
      ['close', 3, 'acme'],
    ],
  )
})

test("shares of a month's units, by the highest that is reached", async () => {
  const found = await customers([
    { name: 'low', used: 79, limit: 100 },
    { name: 'most', used: 80, limit: 100 },
    { name: 'all', used: 100, limit: 100 },
    { name: 'beyond', used: 5000, limit: 100 },
    { name: 'unlimited', used: 5000, limit: null },
    { name: 'none', used: 5000, limit: 0 },
    { name: 'suspended', used: 100, limit: 100, state: 'suspended' },
  ])
  assert.deepEqual(
    found.map(({ data }) => [data['subscription'], data['percent'], data['month']]),
    [
      ['most', 80, '2026-11'],
      ['all', 100, '2026-11'],
      ['beyond', 100, '2026-11'],
    ],
  )
})

test('units count for the month in which they were charged, whatever month the wall clock shows', async () => {
  const clock = createManualClock(Date.parse('2026-11-30T23:59:59.500Z'))
  const calendar = new Calendar(clock)
  const memory = new QuotaMemory(createQuotaMemory({ accountsMax: 8, threads: 1 }), 0)
  createLedger({ calendar, memory, spentBefore: new Map([['sub_most', 90]]) })
  const subscription = { id: 'sub_most', name: 'most', customerId: 'cus_1', state: 'active', validUntil: null }
  const found = async () => {
    const facts = {
      snapshot: () =>
        ({ subscriptions: () => [], subscription: () => subscription, customer: () => undefined }) as never,
      monthUnits: () => monthUnits(memory, calendar),
      limitsOf: () => ({ unitsPerMonth: 100 }),
    }
    const slices = { isSpent: () => false, yield: async () => {} }
    const options = { endsDays: [], usagePercents: [80] }
    const conditions = await customerConditions(options, facts, { nowMs: clock.nowMs(), slices })
    return conditions.map(({ key }) => key)
  }
  const ofNovember = ['usage.threshold sub_most 2026-11 80']
  assert.deepEqual(await found(), ofNovember)
  // The calendar is updated once a second at least, so for a moment the wall clock is a month ahead of it.
  clock.advance(600)
  assert.deepEqual(await found(), ofNovember)
  clock.advance(400)
  calendar.update(clock.monotonicMs())
  assert.deepEqual(await found(), [])
})

test('the units of very many subscriptions are read in slices', async () => {
  const list = Array.from({ length: 1000 }, (_, n) => ({ name: `s${n}`, used: 90, limit: 100 }))
  let [steps, read, readAtOnce] = [0, 0, 0]
  const slices: Slices = {
    isSpent: () => ++steps % 50 === 0,
    async yield() {
      read = 0
    },
  }
  const found = await customers(list, slices, () => {
    read += 1
    readAtOnce = Math.max(readAtOnce, read)
  })
  assert.equal(found.length, 1000)
  assert.equal(readAtOnce, 50)
})

test('conditions end with one more than the outbox takes', async () => {
  const list = Array.from({ length: CONDITIONS_MAX + 10 }, (_, n) => ({ name: `s${n}`, used: 90, limit: 100 }))
  const never: Slices = { isSpent: () => false, yield: async () => assert.fail() }
  assert.equal((await customers(list, never)).length, CONDITIONS_MAX + 1)
  const ending = list.map((each) => ({ ...each, until: NOW + DAY_MS }))
  assert.equal((await customers(ending, never)).length, CONDITIONS_MAX + 1)
})

const testCondition = (at: number) => ({ key: `k${at}`, kind: 'test', message: `"${at}"`, data: { at } }) as const

test('the file is printed in slices, one write at a time; calls meanwhile share the next one', async () => {
  const writes: { readonly text: string; readonly end: () => void }[] = []
  let yields = 0
  const file = {
    read: async () => undefined,
    write: (text: string) => new Promise<void>((resolve) => writes.push({ text, end: resolve })),
  }
  const slices = () => ({ isSpent: () => true, yield: async () => void (yields += 1) })
  const deps = { file, slices, random: createSeededRandom(1), nowMs: NOW, onDamaged: () => assert.fail() }
  const outbox = await Outbox.open({ receiversOf: () => ['ops'] }, deps)
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
  const observed = outbox.observe([0, 1, 2].map(testCondition), NOW)
  await turn()
  assert.equal(yields, 6, 'three conditions and three notices')
  assert.deepEqual([...outbox.waitingFor('ops')], [], 'nothing is sent before it is on the disk')
  const more = Promise.all([outbox.save(), outbox.add(testCondition(3), NOW), outbox.save()])
  await turn()
  assert.equal(writes.length, 1)
  writes[0]?.end()
  await observed
  assert.equal([...outbox.waitingFor('ops')].length, 3)
  await turn()
  assert.equal(writes.length, 2)
  writes[1]?.end()
  await more
  assert.equal([...outbox.waitingFor('ops')].length, 4)
  const stored = { version: 1, sinceMs: NOW, active: ['k0', 'k1', 'k2'], notices: outbox.list().toReversed() }
  assert.equal(writes[1]?.text, JSON.stringify(stored))
})

test('the outbox is bounded: delivered notices beyond the maximum go, waiting ones stay', async () => {
  let text = ''
  const file = { read: async () => undefined, write: async (next: string) => void (text = next) }
  const deps = { file, random: createSeededRandom(1), nowMs: NOW, onDamaged: () => assert.fail() }
  const outbox = await Outbox.open({ receiversOf: () => ['ops'], keptMax: 3, conditionsMax: 5 }, deps)
  const condition = (at: number) => ({ key: `k${at}`, kind: 'test', message: '', data: {} }) as const
  await outbox.observe([0, 1, 2, 3, 4].map(condition), NOW)
  assert.equal(outbox.list().length, 5, 'all of them wait')
  for (const { delivery } of [...outbox.waitingFor('ops')]) delivery.state = 'delivered'
  await outbox.observe([0, 1, 2, 3, 4, 5].map(condition), NOW)
  assert.equal(outbox.isFull, true)
  await outbox.save()
  assert.equal(outbox.list().length, 3)
  const damaged: string[] = []
  const read = async () => text.slice(0, 20)
  await Outbox.open(
    { receiversOf: () => [] },
    { ...deps, file: { ...file, read }, onDamaged: (why) => damaged.push(why) },
  )
  assert.equal(damaged.length, 1)
})

test('a notice that could not be written to the disk is not kept, and is made again by the next observation', async () => {
  let isFull = true
  const write = async () => {
    if (isFull) throw new Error('ENOSPC: no space left on device')
  }
  const deps = {
    file: { read: async () => undefined, write },
    random: createSeededRandom(1),
    nowMs: NOW,
    onDamaged() {},
  }
  const outbox = await Outbox.open({ receiversOf: () => ['ops'] }, deps)
  const condition = { key: 'k', kind: 'test', message: '', data: {} } as const
  await assert.rejects(outbox.observe([condition], NOW), /ENOSPC/)
  assert.deepEqual([...outbox.waitingFor('ops')], [])
  isFull = false
  assert.equal((await outbox.observe([condition], NOW)).length, 1)
  assert.equal([...outbox.waitingFor('ops')].length, 1)
  isFull = true
  await assert.rejects(outbox.add(condition, NOW), /ENOSPC/)
  assert.equal(outbox.list().length, 1)
})
