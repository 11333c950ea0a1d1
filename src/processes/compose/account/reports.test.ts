import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { addCustomer } from '../../../access/provisioning/customers.ts'
import { createSubscription } from '../../../access/provisioning/subscriptions.ts'
import { revokeTokens, rotateToken } from '../../../access/provisioning/tokens.ts'
import type { UsageInterface, UsageRow } from '../../../access/store/model.ts'
import { openStore } from '../../../access/store/open.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import { createManualClock } from '../../../core/clock.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import { openReportStore } from '../../../shreds/report/store.ts'
import { REPORT_FILE } from '../services/shreds.ts'
import { accountReportsOver } from './over-channel.ts'
import { createAccountReports } from './reports.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const FROM_MS = Date.UTC(2026, 7, 1)
const DAYS = 92
const INTERFACES: readonly UsageInterface[] = ['rpc', 'ws', 'grpc', 'indexer', 'shreds']
const BASE = { log: silentLogger, clock: systemClock, random: secureRandom }

async function openTestStore(folder: ReturnType<typeof makeTestFolder>): Promise<AccessStore> {
  const audit = { file: folder.file('audit.log'), mirror: 'test', toolVersion: '0' }
  return openStore({ location: { engine: 'sqlite', file: folder.file('access.db') }, audit, check: 'quick' }, BASE)
}

/** Usage in every hour, of two subscriptions. */
function usageRows(): UsageRow[] {
  const hours = Array.from({ length: DAYS * 24 }, (_, at) => FROM_MS + at * HOUR_MS)
  return ['sub_own', 'sub_other'].flatMap((subscriptionId) =>
    hours.flatMap((hour) =>
      INTERFACES.map((name) => {
        const counts = { calls: 2, units: 3, refused: 1 }
        return { subscriptionId, hour, interface: name, ...counts, bytes: 100, methods: { getSlot: counts } }
      }),
    ),
  )
}

test('sums the rows of the own subscription only, in every grouping and over every part of the period', async () => {
  using folder = makeTestFolder()
  await using store = await openTestStore(folder)
  await store.addUsage(usageRows(), new Map())
  const reports = createAccountReports({ ...BASE, store, stateDir: folder.path })
  const read = async (by: 'hour' | 'day' | 'total' | 'method', days: number, offsetMs = 0) => {
    const fromMs = FROM_MS + offsetMs
    const report = await reports.usage({ subscriptionId: 'sub_own', by, fromMs, toMs: fromMs + days * DAY_MS })
    assert.ok(report.ok, by)
    return report.lines
  }
  for (const [by, days, lines] of [
    ['total', DAYS, INTERFACES.length],
    ['hour', 31, 31 * 24 * INTERFACES.length],
    ['day', 31, 31 * INTERFACES.length],
    ['method', 31, INTERFACES.length],
  ] as const) {
    const found = await read(by, days)
    assert.equal(found.length, lines, by)
    assert.equal(
      found.reduce((sum, { calls }) => sum + calls, 0),
      days * 24 * INTERFACES.length * 2,
      by,
    )
    assert.ok(found.every(({ subscriptionId }) => subscriptionId === 'sub_own'))
    assert.ok(
      found.every(({ hour }, at) => at === 0 || (found[at - 1]?.hour ?? 0) <= hour),
      'the oldest first',
    )
  }
  const [first] = await read('hour', 1, 5 * HOUR_MS)
  assert.equal(first?.hour, FROM_MS + 5 * HOUR_MS)
})

test('lists the valid tokens: a replaced one until its end, never a text or a digest', async () => {
  using folder = makeTestFolder()
  await using store = await openTestStore(folder)
  const clock = createManualClock()
  const actor = { uid: 0, user: 'test', sudoUser: null, tty: null }
  const on = { store, random: secureRandom, nowMs: clock.nowMs(), actor }
  await addCustomer(on, { name: 'acme', contact: '' })
  const input = { customer: 'acme', name: 'prod', plan: 'grow', overrides: {}, validUntil: null }
  const { subscription, token } = await createSubscription(on, { ...input, products: ['bundle'] })
  const fresh = await rotateToken(on, { subscription: 'prod', graceMs: HOUR_MS })
  const reports = createAccountReports({ ...BASE, clock, store, stateDir: folder.path })
  const listed = async () => {
    const found = await reports.tokens(subscription.id)
    assert.ok(found.ok)
    assert.doesNotMatch(JSON.stringify(found), /slc_|sha256/)
    return found.tokens
      .map(({ last4, state }) => [last4, state])
      .toSorted((a, b) => ((a[1] ?? '') < (b[1] ?? '') ? -1 : 1))
  }
  const [old, current] = [token?.record.last4, fresh.record.last4]
  assert.deepEqual(await listed(), [
    [current, 'active'],
    [old, 'retiring'],
  ])
  clock.advance(HOUR_MS + 1)
  assert.deepEqual(await listed(), [[current, 'active']])
  assert.deepEqual(await reports.tokens('sub_nobody'), { ok: true, tokens: [] })
  await revokeTokens({ ...on, nowMs: clock.nowMs() }, { subscription: 'prod' })
  assert.deepEqual(await listed(), [])
})

test('the delivery of the last 24 hours is that of the own subscription; without a file there is none', async () => {
  using folder = makeTestFolder()
  await using store = await openTestStore(folder)
  const reports = createAccountReports({ ...BASE, store, stateDir: folder.path })
  const nothing = { ok: true, state: null, last_fault: null, delivery: null }
  assert.deepEqual(await reports.delivery('sub_own'), nothing)
  mkdirSync(join(folder.path, REPORT_FILE[0]))
  await using made = await openReportStore(join(folder.path, ...REPORT_FILE), { ...BASE, create: true })
  const zero = {
    unsentRate: 1,
    unsentTotalRate: 0,
    unsentBuffer: 0,
    unsentPaused: 2,
    unsentError: 0,
    refusals: 0,
    slots: 1,
  }
  const hour = Math.floor(systemClock.nowMs() / HOUR_MS) * HOUR_MS
  const row = { ...zero, hour, packets: 5, bytes: 6000, duplicates: 0, firstSlot: 7, lastSlot: 9 }
  const upTo50Micros = [0, 100, ...Array.from({ length: 16 }, () => 0)]
  await made.add(
    [
      { ...row, subscriptionId: 'sub_own' },
      { ...row, subscriptionId: 'sub_own', hour: hour - 2 * HOUR_MS },
      { ...row, subscriptionId: 'sub_own', hour: hour - 30 * HOUR_MS },
      { ...row, subscriptionId: 'sub_other' },
    ],
    [{ hour, packets: upTo50Micros }],
  )
  const report = await reports.delivery('sub_own')
  assert.ok(report.ok)
  const { lines, totals } = report.delivery as { lines: object[]; totals: object }
  assert.equal(lines.length, 2)
  const delays = { delay_p50_ms: 0.038, delay_p99_ms: 0.05 }
  assert.deepEqual(totals, { packets: 10, bytes: 12_000, unsent: 6, slots: 2, first_slot: 7, last_slot: 9, ...delays })
})

test('a store that fails gives no report and its reason goes to the log, not to the customer', async () => {
  const store = {
    usage: () => Promise.reject(new Error('relation does not exist')),
    methodUsage: () => Promise.reject(new Error('x')),
    find: () => Promise.reject(new Error('x')),
  }
  const reports = createAccountReports({ ...BASE, store, stateDir: '/nowhere' })
  const query = { subscriptionId: 'sub_own', by: 'day', fromMs: FROM_MS, toMs: FROM_MS + DAY_MS } as const
  assert.deepEqual(await reports.usage(query), { ok: false, reason: 'failed' })
})

test('a report reads a bounded number of rows, and its place is free again', async () => {
  const row: UsageRow = {
    subscriptionId: 'sub_own',
    hour: FROM_MS,
    interface: 'rpc',
    calls: 1,
    units: 1,
    refused: 0,
    bytes: 1,
  }
  const readRows = async (rows: number) => {
    const store = {
      usage: async () => Array.from({ length: rows }, () => row),
      methodUsage: async () => [],
      find: async () => [],
    }
    const reports = createAccountReports({ ...BASE, store, stateDir: '/nowhere' })
    return reports.usage({ subscriptionId: 'sub_own', by: 'total', fromMs: FROM_MS, toMs: FROM_MS + DAY_MS })
  }
  const found = await readRows(50_000)
  assert.equal(found.ok && found.lines[0]?.calls, 50_000)
  assert.deepEqual(await readRows(50_001), { ok: false, reason: 'failed' })
})

test('the state of the relay is that of the own destination', async () => {
  using folder = makeTestFolder()
  await using store = await openTestStore(folder)
  const status = () => ({
    destinations: [
      { subscriptionId: 'sub_other', state: 'suspect', lastFault: 'of another' },
      { subscriptionId: 'sub_own', state: 'sending', lastFault: null },
    ],
    refused: [
      { subscriptionId: 'sub_other', reason: 'of another' },
      { subscriptionId: 'sub_late', reason: 'no place is free' },
    ],
  })
  const reports = createAccountReports({ ...BASE, store, stateDir: folder.path, shreds: { status } as never })
  const none = { ok: true, last_fault: null, delivery: null }
  assert.deepEqual(await reports.delivery('sub_own'), { ...none, state: 'sending' })
  assert.deepEqual(await reports.delivery('sub_late'), { ...none, state: 'refused: no place is free' })
  assert.deepEqual(await reports.delivery('sub_new'), { ...none, state: null })
})

test('a thread whose control plane does not reply has no report, and asks for its own subscription', async () => {
  const asked: unknown[] = []
  const reports = accountReportsOver({
    async call(method, params) {
      asked.push([method, params])
      throw new Error('no reply')
    },
  })
  const query = { subscriptionId: 'sub_own', by: 'day', fromMs: FROM_MS, toMs: FROM_MS + DAY_MS } as const
  const late = { ok: false, reason: 'late' }
  assert.deepEqual([await reports.usage(query), await reports.tokens('sub_own')], [late, late])
  assert.deepEqual(await reports.delivery('sub_own'), late)
  assert.deepEqual(asked, [
    ['account-usage', query],
    ['account-tokens', 'sub_own'],
    ['account-delivery', 'sub_own'],
  ])
})
