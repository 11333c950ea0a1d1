import assert from 'node:assert/strict'
import { test } from 'node:test'

type Dialog = {
  readonly fields?: readonly { readonly name: string; readonly value?: string }[]
  readonly check?: (values: Readonly<Record<string, string>>) => string | undefined
}

/** Not imported by name: the page has types of the browser. */
const PAGE = new URL('../../src/console/page/actions/subscriptions.ts', import.meta.url)

test('a limit that is not changed is not checked: it may have been set in another way', async () => {
  const { changeLimits } = (await import(PAGE.href)) as { changeLimits(store: object, shown: object): Dialog }
  const overrides = {
    units_per_second: 1e-7,
    units_per_month: Number.MAX_SAFE_INTEGER,
    methods: [{ method: 'getBlock', per_second: 1e-7 }],
  }
  const shown = { name: 'acme', plan: 'build', products: ['bundle'], overrides }
  const { fields = [], check } = changeLimits({}, { ...shown, limits: { ...overrides, ws_connections: 5 } })
  const values = Object.fromEntries(fields.map(({ name, value = '' }) => [name, value]))
  assert.deepEqual([values['units_per_second'], values['units_per_month']], ['1e-7', '9007199254740991'])
  assert.equal(check?.({ ...values, ws_connections: '7' }), undefined)
  assert.match(check?.({ ...values, units_per_second: '2e-7' }) ?? '', /number above zero/)
  assert.match(check?.({ ...values, methods: 'getBlock' }) ?? '', /getProgramAccounts/)
})
