import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printTokenState } from './token-state.ts'

test('a token whose grace has passed is shown as expired', () => {
  const past = Date.UTC(2026, 0, 31, 12)
  assert.equal(printTokenState({ state: 'retiring', notAfter: past }), 'expired')
  assert.equal(printTokenState({ state: 'retiring', notAfter: past }, true), 'expired, since 2026-01-31 12:00:00 UTC')
  const future = Date.UTC(9999, 0, 31)
  assert.equal(
    printTokenState({ state: 'retiring', notAfter: future }, true),
    'retiring, works until 9999-01-31 00:00:00 UTC',
  )
  assert.equal(printTokenState({ state: 'revoked', notAfter: past }, true), 'revoked')
  assert.equal(printTokenState({ state: 'active', notAfter: null }), 'active')
})
