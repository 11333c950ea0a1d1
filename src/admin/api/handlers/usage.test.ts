import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openHandlers } from '../../../../test/support/admin/handlers.ts'
import { CONTEXT } from '../../../../test/support/store/engines.ts'
import type { AccessStore, AccessView } from '../../../access/store/store.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import type { AdminCall } from '../handler.ts'

const HOUR = Date.UTC(2027, 0, 20, 10)
const COUNTS = { calls: 2, units: 5, refused: 1 }
const CALL = { nowMs: HOUR + 3_600_000 }

async function openReports(folder: string) {
  const api = await openHandlers(folder)
  await api.call('customerAdd', { body: { name: 'acme', contact: '' } })
  for (const name of ['a', 'b']) {
    const { body } = await api.call('subCreate', { body: { name, customer: 'acme' } })
    const { id: subscriptionId } = body as { id: string }
    await api.store.addUsage([{ subscriptionId, hour: HOUR, interface: 'rpc', ...COUNTS, bytes: 0 }], new Map())
  }
  return api
}

/** Replaces what the reports read of the store. */
function replaceReads(store: AccessStore, replaced: (view: AccessView) => Partial<AccessView>): void {
  const { read } = store
  store.read = (work) => read((view) => work({ ...view, ...replaced(view) }))
}

const unitsOf = (reply: { body: unknown }) => (reply.body as { total: { units: number } }).total.units

describe('reports of usage', () => {
  test('two reports of several subscriptions run at the same time; one of a single subscription is not refused', async () => {
    using folder = makeTestFolder()
    await using api = await openReports(folder.path)
    const released = Promise.withResolvers<void>()
    replaceReads(api.store, ({ usagePages }) => ({
      async *usagePages(selection) {
        if (selection.subscriptionId === undefined) await released.promise
        yield* usagePages(selection)
      },
    }))
    const report = (query: Record<string, string>) => api.call('usage', { ...CALL, query })
    const running = [report({ by: 'interface' }), report({})]
    await assert.rejects(report({ by: 'day' }), { code: 'busy', message: /2 reports/ })
    await assert.rejects(report({ customer: 'acme' }), { code: 'busy' })
    assert.equal(unitsOf(await report({ subscription: 'a' })), 5)
    released.resolve()
    assert.deepEqual((await Promise.all(running)).map(unitsOf), [10, 10])
    assert.equal(unitsOf(await report({ customer: 'acme' })), 10)
    await assert.rejects(report({ by: 'year' }), { code: 'invalid-value' })
    for (const _ of [1, 2, 3]) await assert.rejects(report({ customer: 'unknown' }), { code: 'not-found' })
    assert.equal(unitsOf(await report({})), 10, 'a report that failed is not counted any more')
  })

  test('a customer with more than 100 subscriptions gets a report that reads their usage and no other', async () => {
    using folder = makeTestFolder()
    await using api = await openReports(folder.path)
    const { body: large } = await api.call('customerAdd', { body: { name: 'large', contact: '' } })
    const { id: customerId } = large as { id: string }
    await api.store.change(CONTEXT, async (tx) => {
      for (let at = 0; at < 1004; at++)
        await tx.put('subscriptions', {
          ...{
            id: `sub_large${at}`,
            customerId,
            name: `large-${at}`,
            plan: 'pro',
            products: ['bundle'],
            overrides: {},
          },
          ...{ state: 'active', createdAt: at, validUntil: null },
        })
      return { audit: { action: 'test.fill', subjects: [customerId] }, result: undefined }
    })
    const usage = Array.from({ length: 1003 }, (_, at) => ({
      ...{ subscriptionId: `sub_large${at}`, hour: HOUR, interface: 'rpc' as const },
      ...{ ...COUNTS, units: at + 1, bytes: 0 },
    }))
    await api.store.addUsage(usage, new Map())
    const views = new Set<AccessView>()
    let [rows, pages] = [0, 0]
    replaceReads(api.store, (view) => {
      const { page, usagePages } = view
      return {
        page(kind, request) {
          views.add(view)
          assert.equal(request.order, undefined, 'the index of customers is in the order of names')
          pages += 1
          return page(kind, request)
        },
        async *usagePages(selection) {
          views.add(view)
          assert.ok(selection.subscriptionId !== undefined, 'the usage of all customers is not read')
          for await (const page of usagePages(selection)) {
            rows += page.length
            yield page
          }
        },
      }
    })
    const { body } = await api.call('usage', { ...CALL, query: { customer: 'large' } })
    const report = body as { items: { units: number }[]; rest: unknown }
    assert.equal(unitsOf({ body }), (1003 * 1004) / 2, 'each subscription is read once')
    assert.deepEqual([report.items.length, report.items[1]?.units], [101, 1003])
    assert.deepEqual(report.rest, { subscriptions: 903, calls: 1806, units: (903 * 904) / 2, refused: 903, bytes: 0 })
    assert.equal(rows, 2 * 1003, 'once for the largest, once for their lines')
    assert.deepEqual([views.size, pages], [1, 3], 'on one connection')
  })

  test('a report that reads too many rows is refused, also one of a customer', async () => {
    using folder = makeTestFolder()
    await using api = await openReports(folder.path)
    const row = { subscriptionId: 'sub_x', hour: HOUR, interface: 'rpc' as const, ...COUNTS, bytes: 0 }
    const page = Array.from({ length: 100_000 }, () => row)
    replaceReads(api.store, () => ({
      async *usagePages() {
        for (let at = 0; at < 21; at++) yield page
      },
    }))
    for (const query of [{}, { customer: 'acme' }])
      await assert.rejects(api.call('usage', { ...CALL, query }), /a report reads at most 2000000 rows/)
  })

  test('a report ends when its client is gone, and releases the connection to the store', async () => {
    using folder = makeTestFolder()
    await using api = await openReports(folder.path)
    const client = new AbortController()
    let pages = 0
    let isReleased = false
    replaceReads(api.store, () => ({
      async *usagePages() {
        try {
          for (; pages < 1000; pages++) {
            if (pages === 2) client.abort()
            yield [{ subscriptionId: 'sub_x', hour: HOUR, interface: 'rpc' as const, ...COUNTS, bytes: 0 }]
          }
        } finally {
          isReleased = true
        }
      },
    }))
    const query = new URLSearchParams()
    const call = { ...CALL, query, params: {}, signal: client.signal } as unknown as AdminCall
    await assert.rejects(api.handlers.usage(call), /the client has closed the connection/)
    assert.deepEqual([pages, isReleased], [2, true])
  })
})
