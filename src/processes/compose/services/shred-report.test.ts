import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openHandlers } from '../../../../test/support/admin/handlers.ts'
import { createSubscription } from '../../../access/provisioning/subscriptions.ts'
import type { AdminCall } from '../../../admin/api/handler.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { sumDelivery } from '../../../shreds/report/delivery-reports.ts'
import { type DeliveryRow, openReportStore, SUM_NAMES } from '../../../shreds/report/store.ts'
import { shredReportHandler } from './shred-report.ts'
import { REPORT_FILE } from './shreds.ts'

const HOUR_MS = 3_600_000
const NOW_MS = Date.UTC(2027, 0, 20, 12, 30)

type Report = { by: string; items: Record<string, unknown>[]; next_cursor: null }

function rowOf(subscriptionId: string, hour: number, packets: number): DeliveryRow {
  const sums = Object.fromEntries(SUM_NAMES.map((name) => [name, 0])) as Record<(typeof SUM_NAMES)[number], number>
  return { ...sums, packets, bytes: packets * 1000, duplicates: 3, subscriptionId, hour, firstSlot: 5, lastSlot: 9 }
}

test('the delivery report has every row of the period once, over many pages of the file', async () => {
  using folder = makeTestFolder()
  await using api = await openHandlers(folder.path)
  await api.call('customerAdd', { body: { name: 'acme' } })
  const actor = { uid: 1, user: 'op', sudoUser: null, tty: null }
  const on = { store: api.store, random: secureRandom, actor, nowMs: NOW_MS }
  const { subscription } = await createSubscription(on, {
    ...{ customer: 'acme', name: 'one', plan: 'build', products: ['shreds-raw'], overrides: {} },
    ...{ validUntil: null, destination: undefined },
  })
  const { shredReport } = shredReportHandler({
    ...{ stateDir: folder.path, store: api.store, random: secureRandom },
    snapshot: api.snapshot,
  })
  const report = async (query: Record<string, string>): Promise<Report> => {
    const call = { query: new URLSearchParams(query), nowMs: NOW_MS } as AdminCall
    return (await shredReport(call)).body as Report
  }
  assert.deepEqual((await report({})).items, [], 'before anything was sent')

  mkdirSync(join(folder.path, REPORT_FILE[0]))
  await using reports = await openReportStore(join(folder.path, ...REPORT_FILE), {
    ...{ clock: systemClock, random: secureRandom, create: true },
  })
  const thisHour = Date.UTC(2027, 0, 20, 12)
  const rows = Array.from({ length: 60 }, (_, hour) =>
    Array.from({ length: 50 }, (_row, at) =>
      rowOf(at === 0 ? subscription.id : `sub_other${at}`, thisHour - hour * HOUR_MS, at + 1),
    ),
  ).flat()
  await reports.add(rows)

  const all = await report({ since: '30d' })
  assert.equal(all.items.length, rows.length)
  assert.equal(
    new Set(all.items.map((item) => JSON.stringify([item['from'], item['subscription_id']]))).size,
    rows.length,
  )
  const inDay = rows.filter(({ hour }) => hour > NOW_MS - 25 * HOUR_MS)
  assert.equal((await report({})).items.length, inDay.length, 'the last day, where no period is given')
  const days = await report({ since: '30d', by: 'day' })
  assert.equal(days.items.length, sumDelivery(rows, 'day').length)
  const [total, ...more] = (await report({ since: '30d', by: 'total', subscription: 'one' })).items
  assert.deepEqual(more, [])
  assert.deepEqual(
    [total?.['packets'], total?.['bytes'], total?.['duplicates_suppressed'], total?.['first_slot'], total?.['from']],
    [60, 60_000, 180, 5, undefined],
  )
  await assert.rejects(report({ by: 'method' }), { code: 'invalid-value' })
  await assert.rejects(report({ subscription: 'nobody' }), { code: 'not-found' })
})
