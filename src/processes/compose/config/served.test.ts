import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { configSchema } from './config.ts'
import { isTrial, onlyInServe } from './served.ts'
import { loadSettings } from './settings.ts'

test('what is configured and only serve runs: billing, notices, and an admin API that has values', async () => {
  using folder = makeTestFolder()
  const sections = async (text: string) => {
    const config = folder.file('sluice.toml')
    writeFileSync(config, text)
    return onlyInServe(await loadSettings({ process: { env: {} } }, { config, state: folder.path }))
  }
  assert.deepEqual(await sections(''), [], 'the admin API is on by default')
  assert.deepEqual(await sections('[admin]\nenabled = false\nlisten = "127.0.0.1:1"\n'), [])
  assert.deepEqual(await sections('[admin]\nlisten = "127.0.0.1:1"\n'), ['admin'])
  const all = '[billing]\nsink = "stripe"\n[notices]\ncommand = ["notify"]\n[admin]\nenabled = true\n'
  assert.deepEqual(await sections(all), ['billing', 'notices', 'admin'])
})

test('a trial has neither a node nor a source of events', () => {
  const isOne = (config: object) => isTrial(configSchema.parse(config))
  const nodes = [{ name: 'a', rpc: 'https://a.example.net', ws: 'wss://a.example.net', grpc: 'https://a.example.net' }]
  assert.equal(isOne({}), true)
  assert.equal(isOne({ execution: { simulated: true } }), true)
  assert.equal(isOne({ upstreams: { nodes } }), false)
  assert.equal(isOne({ execution: { ring: '/dev/hugepages/ring' } }), false)
  assert.equal(isOne({ execution: { node: { rpc: 'https://evm.example.net' } } }), false)
})
