import assert from 'node:assert/strict'
import { test } from 'node:test'
import { billingOptions } from './options.ts'

const faultsOf = (section: object): string[] =>
  billingOptions.safeParse(section).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? []

test('the first day is a day of the calendar: another one would begin in the next month, or never', () => {
  for (const from of ['2026-11-01', '2028-02-29']) assert.deepEqual(faultsOf({ from }), [], from)
  for (const from of ['2026-13-01', '2026-00-10', '2026-02-30', '2027-02-29', '2026-11-31', '2026-1-1', 'now'])
    assert.match(faultsOf({ from }).join(), /^from: give a day such as/, from)
})

test('the address has no credentials and no query, and the key is a reference', () => {
  assert.deepEqual(faultsOf({ url: 'https://openmeter.example.net/base', key: 'file:key' }), [])
  for (const url of [
    'https://user@h.example',
    'https://:password@h.example',
    'https://h.example/?key=1',
    'https://h.example/#key',
  ])
    assert.match(faultsOf({ url }).join(), /^url: give the address without user, password and query/, url)
  for (const url of ['ftp://h.example', 'h.example', 'https://h.example/a b'])
    assert.match(faultsOf({ url }).join(), /^url: give https/, url)
  for (const key of ['sk_live_x', 'file:', 'env:'])
    assert.match(faultsOf({ key }).join(), /^key: secrets are given by reference/, key)
})

test('Stripe gets the ids of its customers, so that its events cannot name subscriptions', () => {
  for (const section of [
    { sink: 'stripe' },
    { sink: 'stripe', subject: 'customer' },
    { sink: 'lago', subject: 'subscription' },
  ])
    assert.deepEqual(faultsOf(section), [])
  assert.match(
    faultsOf({ sink: 'stripe', subject: 'subscription' }).join(),
    /^subject: Stripe counts usage of customers/,
  )
})
