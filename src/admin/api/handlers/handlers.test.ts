import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openHandlers, type TestHandlers } from '../../../../test/support/admin/handlers.ts'

type Body = Record<string, unknown> & { items: Record<string, unknown>[]; next_cursor: string | null }

describe('the handlers of the admin API', () => {
  let folder: string
  let api: TestHandlers
  const bodyOf = async (...args: Parameters<TestHandlers['call']>) => (await api.call(...args)).body as Body

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-handlers-'))
    api = await openHandlers(folder)
    await api.call('customerAdd', { body: { name: 'acme', contact: 'ops@acme.example' } })
    for (const name of ['a', 'b', 'c']) await api.call('subCreate', { body: { name, customer: 'acme' } })
  })
  after(async () => {
    await api[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  test('a change with the revision of an older record is refused, and nothing is changed', async () => {
    const params = { subscription: 'a' }
    const { revision } = await api.call('subShow', { params })
    assert.ok(revision !== undefined)
    const changed = await api.call('subLimit', { params, body: { plan: 'build' }, ifRevision: revision })
    assert.ok((changed.revision ?? 0) > revision)
    const lines = (await api.store.auditHead()).seq
    for (const id of ['subLimit', 'subSuspend', 'tokenRotate', 'productAdd'] as const)
      await assert.rejects(
        api.call(id, { params: { ...params, product: 'indexer' }, body: { plan: 'grow' }, ifRevision: revision }),
        { code: 'revision-changed' },
        id,
      )
    assert.equal((await api.store.auditHead()).seq, lines)
    assert.equal((await bodyOf('subShow', { params }))['plan'], 'build')
  })

  test('a dry run changes nothing and shows no secret', async () => {
    const { seq } = await api.store.auditHead()
    const body = await bodyOf('subCreate', { body: { name: 'dry', customer: 'acme' }, isDryRun: true })
    assert.deepEqual([body['name'], body['token'], body['card']], ['dry', undefined, undefined])
    assert.equal('token' in (await bodyOf('tokenRotate', { params: { subscription: 'b' }, isDryRun: true })), false)
    assert.equal((await api.store.auditHead()).seq, seq)
  })

  test('lists come in pages; a cursor of somebody else is refused', async () => {
    const first = await bodyOf('subList', { query: { limit: '2' } })
    assert.deepEqual(
      first.items.map(({ name, customer, state }) => [name, customer, state]),
      [
        ['a', 'acme', 'active'],
        ['b', 'acme', 'active'],
      ],
    )
    const second = await bodyOf('subList', { query: { limit: '2', cursor: first.next_cursor ?? '' } })
    assert.deepEqual([second.items.map(({ name }) => name), second.next_cursor], [['c'], null])
    assert.equal((await bodyOf('subList', { query: { search: 'ops@acme' } })).items.length, 3)
    assert.deepEqual(
      (await bodyOf('customerList')).items.map(({ subscriptions }) => subscriptions),
      [3],
    )
    for (const query of [{ limit: '0' }, { limit: '1001' }, { cursor: '!' }, { state: 'gone' }, { ending: 'soon' }])
      await assert.rejects(api.call('subList', { query }), { code: 'invalid-value' })
  })

  test('the audit log comes newest first, by subject, and its chain is verified', async () => {
    const all = await bodyOf('audit', { query: { limit: '3' } })
    const seqs = all.items.map(({ seq }) => seq as number)
    assert.deepEqual(
      seqs,
      seqs.toSorted((a, b) => b - a),
    )
    const next = await bodyOf('audit', { query: { limit: '3', cursor: all.next_cursor ?? '' } })
    assert.equal(next.items[0]?.['seq'], (seqs.at(-1) ?? 0) - 1)
    const ofC = await bodyOf('audit', { query: { subject: 'c' } })
    assert.deepEqual(
      ofC.items.map(({ action }) => action),
      ['sub.create'],
    )
    assert.deepEqual([(await bodyOf('auditVerify'))['ok'], ofC.next_cursor], [true, null])
  })

  test('the subject of audit lines is a name, also one that looks like an id, or an id; an unknown name is not found', async () => {
    const subjects = async (subject: string) =>
      (await bodyOf('audit', { query: { subject } })).items.map(({ action }) => action)
    await api.call('customerAdd', { body: { name: 'beta_prod', contact: '' } })
    await api.call('subCreate', { body: { name: 'beta_main', customer: 'beta_prod' } })
    assert.deepEqual(await subjects('beta_prod'), ['sub.create', 'customer.add'])
    const { id } = (await bodyOf('subShow', { params: { subscription: 'beta_main' } })) as unknown as { id: string }
    assert.deepEqual([await subjects('beta_main'), await subjects(id)], [['sub.create'], ['sub.create']])
    assert.deepEqual(await subjects('tok_0000000000000000'), [], 'the id of a record that may have been removed')
    await assert.rejects(subjects('no_such_name'), { code: 'not-found' })
  })

  test('usage has the sums of a period, of a subscription and of all', async () => {
    const { id } = (await bodyOf('subShow', { params: { subscription: 'a' } })) as unknown as { id: string }
    const other = (await bodyOf('subShow', { params: { subscription: 'b' } })) as unknown as { id: string }
    const nowMs = Date.UTC(2027, 0, 20)
    const hour = nowMs - 7_200_000
    const counts = { calls: 2, units: 5, refused: 1 }
    await api.store.addUsage(
      [
        { subscriptionId: id, hour, interface: 'rpc', ...counts, methods: { getSlot: counts } },
        { subscriptionId: id, hour: hour - 86_400_000, interface: 'ws', ...counts, bytes: 70 },
        { subscriptionId: other.id, hour, interface: 'rpc', ...counts },
      ],
      new Map(),
    )
    const units = async (query: Record<string, string>) =>
      (await bodyOf('usage', { query, nowMs })).items.map((item) => item['units'])
    assert.deepEqual(await units({ subscription: 'a', by: 'day' }), [5, 5])
    assert.deepEqual(await units({ by: 'interface' }), [10, 5])
    assert.deepEqual(await units({ by: 'method', customer: 'acme' }), [5])
    assert.deepEqual(await units({ since: '24h', by: 'hour', subscription: 'a' }), [5])
    const all = await bodyOf('usage', { query: {}, nowMs })
    assert.deepEqual(
      [all['total'], all['rest'], all.items.length],
      [{ calls: 6, units: 15, refused: 3, bytes: 70 }, null, 3],
    )
    assert.deepEqual(
      all.items.map((item) => item['bytes']),
      [70, 0, 0],
    )
    const { total, items } = await bodyOf('usage', { query: { by: 'method' }, nowMs })
    assert.deepEqual([total, items[0]?.['bytes']], [{ calls: 2, units: 5, refused: 1 }, undefined])
    await assert.rejects(api.call('usage', { query: { by: 'year' }, nowMs }), { code: 'invalid-value' })
  })

  test('the series has 48 hours of all customers, the current one last', async () => {
    const { id } = (await bodyOf('subShow', { params: { subscription: 'a' } })) as unknown as { id: string }
    const nowMs = Date.UTC(2027, 2, 20, 10, 30)
    const hour = Date.UTC(2027, 2, 20, 10)
    const counts = { calls: 3, units: 7, refused: 1 }
    const row = { subscriptionId: id, interface: 'rpc' as const, ...counts }
    await api.store.addUsage(
      [
        { ...row, hour },
        { ...row, hour, interface: 'ws' },
        { ...row, hour: hour - 47 * 3_600_000 },
        { ...row, hour: hour - 48 * 3_600_000 },
      ],
      new Map(),
    )
    let series = await bodyOf('overviewSeries', { nowMs })
    // A request reads hours for 100 ms, the next one goes on.
    for (let hours = 1; hours < 48 && series['is_complete'] === false; hours++)
      series = await bodyOf('overviewSeries', { nowMs })
    const { items, ...body } = series
    assert.partialDeepStrictEqual(body, {
      from: '2027-03-18T11:00:00.000Z',
      until: '2027-03-20T11:00:00.000Z',
      is_complete: true,
    })
    assert.equal(items.length, 48)
    assert.deepEqual(items[0], { from: '2027-03-18T11:00:00.000Z', ...counts })
    assert.deepEqual(items[1], { from: '2027-03-18T12:00:00.000Z', calls: 0, units: 0, refused: 0 })
    assert.deepEqual(items[47], { from: '2027-03-20T10:00:00.000Z', calls: 6, units: 14, refused: 2 })
  })

  test('a subscription whose effective state differs from the stored one has both', async () => {
    await api.call('customerAdd', { body: { name: 'late' } })
    await api.call('subCreate', { body: { name: 'late-1', customer: 'late' } })
    const states = async () => {
      const { subscriptions } = (await bodyOf('customerShow', { params: { customer: 'late' } })) as unknown as {
        subscriptions: Record<string, unknown>[]
      }
      const shown = await bodyOf('subShow', { params: { subscription: 'late-1' } })
      const [first] = subscriptions
      return [first?.['state'], first?.['effective_state'], shown['state'], shown['stored_state']]
    }
    assert.deepEqual(await states(), ['active', undefined, 'active', undefined])
    await api.call('customerSuspend', { params: { customer: 'late' } })
    assert.deepEqual(await states(), ['active', 'customer-suspended', 'customer-suspended', 'active'])
    await api.call('customerRemove', { params: { customer: 'late' }, query: { force: 'true' } })
  })

  test('a subscription is not created with the destination of another one', async () => {
    const body = {
      customer: 'acme',
      products: ['shreds-raw'],
      destination: { address: '8.8.4.4:20001', vouched: true },
    }
    await api.call('subCreate', { body: { ...body, name: 'shreds-1' } })
    await assert.rejects(api.call('subCreate', { body: { ...body, name: 'shreds-2' } }), { code: 'already-exists' })
    await assert.rejects(api.call('subShow', { params: { subscription: 'shreds-2' } }), { code: 'not-found' })
    await api.call('subCancel', { params: { subscription: 'shreds-1' } })
  })
})
