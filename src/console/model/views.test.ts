import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ADMIN_ROLES } from '../../contract/admin-routes.ts'
import type { LiveRecord } from '../client/wire.ts'
import { printCsv } from './csv.ts'
import { hourPoints, linesOf, sumOf } from './hour-series.ts'
import { invoiceCsv, showAmount, sortLines } from './invoice.ts'
import { createKeyReader, type KeyPress, VIEW_KEYS } from './keys.ts'
import { LiveLog, showRate } from './live.ts'
import { findViews, foundRecords, paletteOf } from './palette.ts'
import { compareLimits, groupCosts } from './plans.ts'

const NOW_MS = Date.parse('2026-11-16T20:00:00Z')

function overviewAt(live: Partial<LiveRecord>, slot: number | null = 100, lags: readonly number[] = []) {
  const counts = { calls: 0, units: 0, refused: 0, connections: 0, transactions: null, landed: null }
  return {
    live: { at_ms: 0, pid: 7, ...counts, ...live },
    chain: { slot, slot_ms: 400 },
    nodes: lags.map((lag_slots, at) => ({ name: `n${at}`, state: 'healthy', lag_slots })),
  }
}

describe('the live figures', () => {
  test('rates are differences by the clock of the process, and the lag is that of the last node', () => {
    const log = new LiveLog()
    log.add(overviewAt({ at_ms: 1000, calls: 10, landed: 1 }, 100, [0, 3]), NOW_MS)
    log.add(overviewAt({ at_ms: 3000, calls: 50, landed: 2, transactions: 9 }, 105, [1, 0]), NOW_MS + 5000)
    assert.deepEqual(log.points, [
      { atMs: NOW_MS, calls: null, refused: null, transactions: null, landed: null, slots: null, lagSlots: 3 },
      { atMs: NOW_MS + 5000, calls: 20, refused: 0, transactions: null, landed: 0.5, slots: 2.5, lagSlots: 1 },
    ])
  })

  test('the same response counts once; a restart gives no rate; the oldest points go', () => {
    const log = new LiveLog()
    const first = overviewAt({ at_ms: 1000, calls: 1000 })
    log.add(first, NOW_MS)
    log.add(first, NOW_MS)
    assert.equal(log.points.length, 1)
    log.add(overviewAt({ at_ms: 2000, calls: 5, pid: 8 }), NOW_MS)
    assert.equal(log.points.at(-1)?.calls, null)
    for (let at = 3; at < 500; at++) log.add(overviewAt({ at_ms: at * 1000, calls: at, pid: 8 }), NOW_MS + at)
    assert.equal(log.points.length, 300)
    assert.equal(log.points.at(-1)?.atMs, NOW_MS + 499)
    log.add({ chain: { slot: null, slot_ms: null }, nodes: [] }, NOW_MS)
    assert.equal(log.points.length, 300)
  })

  test('a rate has three digits', () => {
    assert.deepEqual([null, 0, 0.44, 12.34, 1234.5].map(showRate), ['–', '0', '0.4', '12.3', '1,235'])
  })
})

describe('the hours', () => {
  const item = { from: '2026-11-16T14:00:00.000Z', calls: 4, units: 9, refused: 0 }

  test('an hour that is not known yet interrupts the line', () => {
    const series = { is_complete: false, items: [item, { ...item, calls: null }, item, { ...item, calls: 2 }] }
    const points = hourPoints(series, 'calls')
    assert.deepEqual(points[0], { label: '2026-11-16 14:00', value: 4 })
    assert.equal(sumOf(points), 10)
    assert.deepEqual(linesOf(points, { width: 30, height: 10 }), [
      { pairs: '0.0,0.0 0.0,0.0', isOpen: false },
      { pairs: '20.0,0.0 20.0,0.0', isOpen: false },
      { pairs: '20.0,0.0 30.0,5.0', isOpen: true },
    ])
    assert.deepEqual(linesOf([], { width: 30, height: 10 }), [])
    assert.deepEqual(linesOf(hourPoints(series, 'refused'), { width: 3, height: 1 }), [
      { pairs: '0.0,1.0 1.0,1.0 2.0,1.0', isOpen: false },
      { pairs: '2.0,1.0 3.0,1.0', isOpen: true },
    ])
    const unknown = { ...item, calls: null }
    assert.deepEqual(
      linesOf(hourPoints({ is_complete: false, items: [unknown, unknown] }, 'calls'), { width: 3, height: 1 }),
      [],
    )
  })
})

describe('billing', () => {
  test('CSV quotes what needs it and no spreadsheet runs a name as a formula', () => {
    const columns = [
      { name: 'a', value: ([a]: readonly [string, number]) => a },
      { name: 'b', value: ([, b]: readonly [string, number]) => b },
    ]
    const rows = [
      ['plain', 1],
      ['with, "quotes"', -2],
      ['=1+1', 3],
      ['@x', 4],
      ['-5.20', 5],
    ] as const
    assert.equal(
      printCsv(rows, columns),
      'a,b\r\nplain,1\r\n"with, ""quotes""",-2\r\n\'=1+1,3\r\n\'@x,4\r\n-5.20,5\r\n',
    )
  })

  test('amounts are in groups of three digits and stay exact; lines are in the order of names', () => {
    const shown = ['0.15', '999.00', '1000.00', '17477.64', '1234567.890123', '12345', '-1500.5'].map(showAmount)
    assert.deepEqual(shown, ['0.15', '999.00', '1,000.00', '17,477.64', '1,234,567.890123', '12,345', '-1,500.5'])
    const line = (customer: string, subscription: string) => ({
      ...{ customer, subscription, subscription_id: `sub_${subscription}`, plan: 'grow', currency: 'EUR' },
      ...{ days: 31, days_of_month: 31, units: 1, bytes: 0 },
      ...{ base: '49.00', usage: '0.25', transfer: '0.00', amount: '49.25' },
    })
    const sorted = sortLines([line('b', 'x'), line('a', 'z'), line('a', 'y')])
    assert.deepEqual(
      sorted.map(({ subscription }) => subscription),
      ['y', 'z', 'x'],
    )
  })

  test('the CSV of an invoice has its amounts as they are, and they add up', () => {
    const line = {
      ...{ customer: 'acme', subscription: 'prod', subscription_id: 'sub_1', plan: 'grow', currency: 'EUR' },
      ...{ days: 31, days_of_month: 31, units: 1_000_000, bytes: 241_000_000_000 },
      ...{ base: '49.00', usage: '0.25', transfer: '12.05', amount: '61.30' },
    }
    const [header, first] = invoiceCsv([line]).split('\r\n')
    assert.match(header ?? '', /^customer,.*,units,bytes,currency,base,usage,transfer,amount$/)
    assert.equal(first, 'acme,prod,sub_1,grow,31,31,1000000,241000000000,EUR,49.00,0.25,12.05,61.30')
  })
})

describe('plans', () => {
  test('limits are side by side, and a dash where a plan has none', () => {
    const rows = compareLimits([
      { name: 'a', limits: { units_per_second: 10, units_per_month: null } },
      { name: 'b', limits: { units_per_second: 1000 } },
    ])
    assert.deepEqual(
      rows.map(({ name, values }) => [name, values]),
      [
        ['units_per_second', ['10', '1,000']],
        ['units_per_month', ['unlimited', '–']],
      ],
    )
  })

  test('methods are grouped by cost, the cheapest first', () => {
    const costs = [
      { method: 'getBlock', cost: 20 },
      { method: 'getSlot', cost: 1 },
      { method: 'getHealth', cost: 1 },
    ]
    assert.deepEqual(groupCosts(costs), [
      { cost: 1, methods: ['getHealth', 'getSlot'] },
      { cost: 20, methods: ['getBlock'] },
    ])
  })
})

describe('the keys', () => {
  const press = (key: string, more: Partial<KeyPress> = {}): KeyPress => ({
    ...{ key, isCommand: false, isAlt: false, isTyping: false, atMs: 0 },
    ...more,
  })

  test('g and the key of a view within 1.5 s go there; each view has its own key', () => {
    const read = createKeyReader()
    assert.equal(read(press('g')), undefined)
    assert.deepEqual(read(press('c', { atMs: 1499 })), { kind: 'view', view: 'customers' })
    assert.equal(read(press('c', { atMs: 1500 })), undefined)
    read(press('g', { atMs: 5000 }))
    assert.equal(read(press('c', { atMs: 6500 })), undefined)
    read(press('g', { atMs: 7000 }))
    assert.equal(read(press('x', { atMs: 7001 })), undefined)
    assert.equal(read(press('c', { atMs: 7002 })), undefined)
    assert.equal(new Set(Object.values(VIEW_KEYS)).size, Object.keys(VIEW_KEYS).length)
  })

  test('in a field keys are text, except Ctrl+K', () => {
    const read = createKeyReader()
    for (const key of ['/', '?', 'g', 'c']) assert.equal(read(press(key, { isTyping: true })), undefined)
    assert.deepEqual(read(press('k', { isTyping: true, isCommand: true })), { kind: 'palette' })
    assert.deepEqual(read(press('K', { isCommand: true })), { kind: 'palette' })
    assert.equal(read(press('k', { isCommand: true, isAlt: true })), undefined)
    assert.equal(read(press('/', { isCommand: true })), undefined)
    assert.deepEqual(read(press('/')), { kind: 'search' })
    assert.deepEqual(read(press('?')), { kind: 'keys' })
  })

  test('the palette offers the views of a role, and records where they are', () => {
    const titles = ADMIN_ROLES.map((role) => findViews(role, 'bill').map(({ name }) => name))
    assert.deepEqual(titles, [['Billing'], [], ['Billing'], []])
    assert.deepEqual(
      findViews('owner', 's')
        .map(({ name }) => name)
        .slice(0, 3),
      ['Subscriptions', 'Shreds', 'Sender'],
    )
    const [view] = findViews('owner', 'aud')
    const [inside] = findViews('owner', 'log')
    assert.ok(view !== undefined && inside !== undefined)
    const record = { ...view, kind: 'customer' as const }
    assert.deepEqual(paletteOf('owner', 'aud', [record]), [view, record])
    assert.deepEqual(paletteOf('owner', 'log', [record]), [record, inside])
    assert.equal(findViews('owner', '').length, Object.keys(VIEW_KEYS).length)
    const customer = { id: 'c', name: 'acme', contact: 'ops', state: 'active', created_at: '' }
    assert.deepEqual(foundRecords([customer], []), [
      { kind: 'customer', name: 'acme', note: 'ops', route: { view: 'customers', id: 'acme', query: {} } },
    ])
  })
})
