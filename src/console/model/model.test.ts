import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ADMIN_ROLES } from '../../contract/admin-routes.ts'
import { createActionKeys } from './action-key.ts'
import { coverageRows } from './coverage.ts'
import { limitRows, parseLimit } from './limits.ts'
import { mayDo, NAVIGATION } from './navigation.ts'
import { daysOf, periodOf } from './periods.ts'
import { parseRoute, printRoute } from './route.ts'
import { secretFacts } from './secrets.ts'
import { showBytes, showDaysLeft, showLastDay } from './time.ts'
import { barsByDay, sumUsage } from './usage.ts'

const NOW_MS = Date.parse('2026-11-16T20:00:00Z')

describe('the console', () => {
  test('routes survive printing and parsing, whatever the name of a record', () => {
    for (const id of ['acme', 'a b/c?d=e#f', 'ä%2F', '..'])
      assert.deepEqual(parseRoute(printRoute({ view: 'customers', id, query: { search: 'x&y' } })), {
        view: 'customers',
        id,
        query: { search: 'x&y' },
      })
    for (const hash of ['', '#', '#/nothing', '#/constructor', '#/customers/a/b', `#/customers/${'a'.repeat(2000)}`])
      assert.deepEqual(parseRoute(hash), { view: 'overview', query: {} }, hash)
    assert.deepEqual(parseRoute('#/customers/%'), { view: 'customers', query: {} })
  })

  test('offers administrators only to owners, and changes to no read-only role', () => {
    const entry = NAVIGATION.flatMap(({ views }) => views).find(({ view }) => view === 'admins')
    assert.deepEqual(
      ADMIN_ROLES.filter((role) => mayDo(role, entry?.permission ?? 'read')),
      ['owner'],
    )
    assert.deepEqual(
      ADMIN_ROLES.filter((role) => mayDo(role, 'provision')),
      ['owner', 'support'],
    )
    assert.equal(mayDo(undefined, 'read'), false)
  })

  test('an action has one key until it succeeds or its input changes', () => {
    let count = 0
    const keys = createActionKeys(() => `key-${(count += 1)}`)
    assert.equal(keys.keyOf({ name: 'a' }), 'key-1')
    assert.equal(keys.keyOf({ name: 'a' }), 'key-1')
    assert.equal(keys.keyOf({ name: 'b' }), 'key-2')
    keys.succeeded()
    assert.equal(keys.keyOf({ name: 'b' }), 'key-3')
  })

  test('yesterday is the complete UTC day before today', () => {
    const yesterday = periodOf('yesterday', NOW_MS)
    assert.deepEqual([yesterday.since, yesterday.until], ['2026-11-15', '2026-11-15'])
    assert.deepEqual(daysOf(yesterday), ['2026-11-15'])
    assert.equal(daysOf(periodOf('7d', NOW_MS)).length, 7)
    assert.deepEqual(daysOf(periodOf('today', Date.parse('2026-11-16'))), ['2026-11-16'])
    assert.equal(periodOf('last-month', NOW_MS).text, '2026-10-01 to 2026-10-31 (UTC)')
  })

  test('limits name their source, and a typed limit is a number, unlimited or that of the plan', () => {
    const rows = limitRows({ units_per_second: 100, ws_connections: null }, { ws_connections: null })
    assert.deepEqual(
      rows.map(({ name, value, source }) => [name, value, source]),
      [
        ['units_per_second', 100, 'plan'],
        ['ws_connections', null, 'override'],
      ],
    )
    assert.deepEqual(parseLimit('units_per_second', ' 1,000 '), { ok: true, value: 1000 })
    assert.deepEqual(parseLimit('units_per_second', ''), { ok: true, value: 'plan' })
    assert.deepEqual(parseLimit('units_per_second', 'Unlimited'), { ok: true, value: null })
    assert.equal(parseLimit('batch_items', 'unlimited').ok, false)
    for (const text of ['0', '-1', '1.5', '1e3', '99999999999999999999'])
      assert.equal(parseLimit('units_per_second', text).ok, false, text)
  })

  test('usage is summed by name, and days without usage are empty bars', () => {
    const row = (from: string, subscription: string, units: number) => ({
      from: `${from}T00:00:00.000Z`,
      subscription,
      interface: 'rpc',
      calls: 1,
      units,
      refused: 0,
    })
    const rows = [row('2026-11-14', 'a', 5), row('2026-11-16', 'b', 20), row('2026-11-16', 'a', 1)]
    assert.deepEqual(
      sumUsage(rows, ({ subscription }) => subscription ?? '').map(({ name, units, calls }) => [name, units, calls]),
      [
        ['b', 20, 1],
        ['a', 6, 2],
      ],
    )
    const bars = barsByDay(rows, ['2026-11-14', '2026-11-15', '2026-11-16'])
    assert.deepEqual(
      bars.map(({ parts }) => parts.map(({ value }) => value)),
      [[5], [0], [21]],
    )
  })

  test('shows the last day on which a subscription works, and the days left', () => {
    assert.equal(showLastDay('2027-02-01T00:00:00.000Z'), '2027-01-31')
    assert.equal(showLastDay(null), 'no end')
    assert.equal(showDaysLeft('2026-11-19T00:00:00.000Z', NOW_MS), 'ends in 3 days')
    assert.equal(showDaysLeft('2026-11-17T00:00:00.000Z', NOW_MS), 'ends today')
    assert.equal(showDaysLeft('2026-11-16T00:00:00.000Z', NOW_MS), 'ended')
    assert.deepEqual([999, 1000, 12_345_678].map(showBytes), ['999 B', '1.0 kB', '12 MB'])
  })

  test('names each secret of a response, and reads coverage as records and as lines', () => {
    assert.deepEqual(
      secretFacts({ token: 't', indexer: { username: 'u', password: 'p' } }).map(({ name, value }) => [name, value]),
      [
        ['token', 't'],
        ['database user', 'u'],
        ['database password', 'p'],
      ],
    )
    const expected = [{ table: 'blocks', from: '1', to: '9', lag: '0', gaps: '2' }]
    const record = { table_name: 'blocks', from_slot: 1, to_slot: 9, lag_slots: 0, open_gaps: 2 }
    assert.deepEqual(coverageRows([record]), expected)
    assert.deepEqual(
      coverageRows(['table_name\tfrom_slot\tto_slot\tlag_slots\topen_gaps', 'blocks\t1\t9\t0\t2']),
      expected,
    )
  })
})
