import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMIT_LABELS } from '../../contract/limits.ts'
import { limitTitle } from './limit-title.ts'

test('a limit begins with a capital letter, except where it begins with the name of a method', () => {
  assert.equal(limitTitle(LIMIT_LABELS.unitsPerSecond), 'Units per second')
  assert.equal(limitTitle(LIMIT_LABELS.sendsPerSecond), 'sendTransaction calls per second')
  assert.equal(limitTitle('Subscriptions'), 'Subscriptions')
})
