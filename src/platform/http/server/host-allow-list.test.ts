import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHostAllowList } from './host-allow-list.ts'

test('accepts listed names and all addresses', () => {
  const isAllowed = createHostAllowList({ listenHost: 'metrics.local', hosts: ['Sluice', 'a.example'] })
  assert.equal(isAllowed(undefined), true)
  for (const host of [
    'localhost',
    'LOCALHOST:9464',
    'localhost.:9464',
    '127.0.0.1:9464',
    '10.1.2.3',
    '[::1]:9464',
    '[fe80::1]',
    'metrics.local:1',
    'sluice:9464',
    'a.example',
  ])
    assert.equal(isAllowed(host), true, host)
  for (const host of [
    '',
    'evil.example',
    'evil.example:9464',
    'localhost.evil.example',
    'evil.localhost',
    '127.0.0.1.evil.example',
    'localhost:9464.evil.example',
    '[localhost]',
    'localhost:80:80',
    '2130706433',
    '0x7f.1',
  ])
    assert.equal(isAllowed(host), false, host)
})
