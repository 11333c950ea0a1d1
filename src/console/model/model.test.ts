import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ADMIN_ROLES } from '../../contract/admin-routes.ts'
import { createActionKeys } from './action-key.ts'
import { coverageRows } from './coverage.ts'
import { limitRows, methodRows, parseLimit, parseMethods, showMethods } from './limits.ts'
import { mayDo, NAVIGATION } from './navigation.ts'
import { parseRoute, printRoute } from './route.ts'
import { secretFacts } from './secrets.ts'

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
    for (const text of ['0', '-1', '1e3', '99999999999999999999'])
      assert.equal(parseLimit('units_per_second', text).ok, false, text)
    assert.deepEqual(parseLimit('units_per_second', '0.5'), { ok: true, value: 0.5 })
    assert.deepEqual(parseLimit('sends_per_second', '0'), { ok: true, value: 0 })
    for (const text of ['0', '1.5']) assert.equal(parseLimit('ws_connections', text).ok, false, text)
  })

  test('limits of methods are typed as they are shown, and one that is not typed any more is removed', () => {
    const overrides = {
      methods: [
        { method: 'getBlock', per_second: 2 },
        { method: 'getSlot', cost: 3 },
      ],
    }
    const limits = { methods: [...overrides.methods, { method: 'getProgramAccounts', cost: 9, per_second: 1 }] }
    assert.deepEqual(
      methodRows(limits, overrides).map(({ label, value, source }) => [label, value, source]),
      [
        ['getBlock calls per second', 2, 'override'],
        ['getSlot units per call', 3, 'override'],
        ['getProgramAccounts calls per second', 1, 'plan'],
        ['getProgramAccounts units per call', 9, 'plan'],
      ],
    )
    const text = showMethods(overrides)
    assert.equal(text, 'getBlock:per-second=2, getSlot:cost=3')
    assert.deepEqual(parseMethods(text, overrides), overrides.methods)
    assert.deepEqual(parseMethods('getBlock:per-second=0.5', overrides), [
      { method: 'getBlock', per_second: 0.5 },
      { method: 'getSlot' },
    ])
    assert.equal(parseMethods(' ', overrides), 'plan')
    for (const wrong of ['getBlock', 'getBlock:5', 'getBlock:cost=1.5', 'getBlock:cost=1,', ':cost=1'])
      assert.equal(parseMethods(wrong, overrides), undefined, wrong)
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
