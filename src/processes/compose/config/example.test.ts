import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleConfig } from './example.ts'

test('writes arrays as TOML arrays, not as tables', () => {
  const lines = exampleConfig({ host: 'rpc.example.net' }).split('\n')
  for (const line of [
    '# hosts = []',
    '# gateways = ["127.0.0.1", "::1"]',
    '# store = { engine = "sqlite", file = "access.db" }',
  ])
    assert.ok(lines.includes(line), line)
})
