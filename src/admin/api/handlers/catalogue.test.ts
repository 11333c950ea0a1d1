import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BUILT_IN_PLANS, createPlanTable } from '../../../access/plan.ts'
import type { ProductKey } from '../../../contract/products.ts'
import { ADMIN_REPLIES } from '../../../contract/schemas/admin-replies.ts'
import type { AdminCall } from '../handler.ts'
import { catalogueHandlers } from './catalogue.ts'

const call = (params: Record<string, string> = {}) => ({ params }) as unknown as AdminCall
const handlersOf = (offered: readonly ProductKey[]) =>
  catalogueHandlers({
    offered: new Set(offered),
    plans: () => createPlanTable(BUILT_IN_PLANS),
    prices: { build: { currency: 'EUR', decimals: 2, perMonth: '49', perMillionUnits: '0.25', perGigabyte: '0.05' } },
  })

test('a product is offered, in preview or coming soon', async () => {
  const statusOf = async (offered: readonly ProductKey[]) => {
    const { items } = (await handlersOf(offered).products(call())).body as {
      items: { key: string; status: string; is_offered: boolean }[]
    }
    return items.find(({ key }) => key === 'shreds-decoded')
  }
  assert.partialDeepStrictEqual(await statusOf(['bundle']), { status: 'coming-soon', is_offered: false })
  assert.partialDeepStrictEqual(await statusOf(['shreds-decoded']), { status: 'preview', is_offered: true })
  const { items } = (await handlersOf(['bundle']).products(call())).body as { items: object[] }
  assert.partialDeepStrictEqual(items[0], { key: 'bundle', status: 'offered' })
})

test('a plan has its price, or null', async () => {
  const price = { currency: 'EUR', per_month: '49', per_million_units: '0.25', per_gigabyte: '0.05' }
  const { items } = (await handlersOf([]).planList(call())).body as { items: { name: string; price: unknown }[] }
  assert.deepEqual(items.find(({ name }) => name === 'build')?.price, price)
  assert.equal(items.find(({ name }) => name === 'starter')?.price, null)
  const shown = (await handlersOf([]).planShow(call({ plan: 'build' }))).body as object
  assert.partialDeepStrictEqual(ADMIN_REPLIES.planShow.parse(shown), { name: 'build', price })
  // As a server before it: a newer command line reads its reply, too.
  const { per_gigabyte: _, ...earlier } = price
  assert.partialDeepStrictEqual(ADMIN_REPLIES.planShow.parse({ ...shown, price: earlier }), { price: earlier })
  assert.throws(() => ADMIN_REPLIES.planShow.parse({ ...shown, price: { ...price, per_month: undefined } }))
})
