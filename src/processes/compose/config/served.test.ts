import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { configSchema } from './config.ts'
import { isUnconfigured, onlyInServe, runsEmbeddedOnly, servedSections, undecodedReason } from './served.ts'
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

test('only the embedded chains run where neither a node nor a source of events is configured', () => {
  const isOne = (config: object) => runsEmbeddedOnly(configSchema.parse(config))
  const nodes = [{ name: 'a', rpc: 'https://a.example.net', ws: 'wss://a.example.net', grpc: 'https://a.example.net' }]
  assert.equal(isOne({}), true)
  assert.equal(isOne({ execution: { simulated: true } }), true)
  assert.equal(isOne({ upstreams: { nodes } }), false)
  assert.equal(isOne({ execution: { ring: '/dev/hugepages/ring' } }), false)
  assert.equal(isOne({ execution: { node: { rpc: 'https://evm.example.net' } } }), false)
})

test('a start is without a configuration where neither a file nor the environment has one', async () => {
  using folder = makeTestFolder()
  const isOne = async (env: Record<string, string>, config?: string) =>
    isUnconfigured((await loadSettings({ process: { env } }, { state: folder.path, ...(config && { config }) })).loaded)
  assert.equal(await isOne({}), true)
  const ofTrial = {
    SLUICE_STATE: folder.path,
    SLUICE_LOG__LEVEL: 'warn',
    SLUICE_BUNDLE__RPC__LISTEN: '127.0.0.1:0',
    SLUICE_SHREDS__LISTEN: '[::1]:0',
    SLUICE_INDEXER__ENABLED: 'false',
    SLUICE_LOCALNET__SLOT_MS: '200',
    SLUICE_DRAIN__LAME_DUCK_MS: '0',
    SLUICE_BUNDLE__WORKERS: '1',
    SLUICE_UPSTREAMS__NODES: '[]',
  }
  assert.equal(await isOne(ofTrial), true, 'where it runs, and what of it')
  const configured: Record<string, string>[] = [
    { SLUICE_UPSTREAMS__NODES: '[{ name = "a", rpc = "https://node.example.net" }]' },
    { SLUICE_HOST: 'rpc.example.net' },
    { SLUICE_BUNDLE__RPC__LISTEN: '0.0.0.0:8899' },
    { SLUICE_ACCESS__STORE__ENGINE: 'sqlite' },
    { SLUICE_BUNDLE__RPC__PLAINTEXT: 'behind-proxy' },
    { SLUICE_SHREDS__LISTEN: '0.0.0.0:20000' },
    { SLUICE_SHREDS__SOURCES: '["192.0.2.1"]' },
    { SLUICE_EXECUTION__RING: '/dev/hugepages/ring' },
    { SLUICE_SENDER__RELAYS: '[{ name = "r", url = "https://relay.example.net" }]' },
    { SLUICE_SENDER__RPC: '[{ name = "r", url = "https://node.example.net" }]' },
    { SLUICE_BUNDLE__RPC__PUBLIC_URL: 'https://rpc.example.net' },
    { SLUICE_ADMIN__PUBLIC_URL: 'https://admin.example.net' },
    { SLUICE_BILLING__SINK: 'stripe' },
    { SLUICE_NOTICES__COMMAND: '["notify"]' },
    { SLUICE_NOTICES__WEBHOOKS: '[{ name = "ops", url = "https://hooks.example.net", secrets = ["env:HOOK"] }]' },
  ]
  for (const env of configured) assert.equal(await isOne({ ...ofTrial, ...env }), false, Object.keys(env).join())
  const file = folder.file('sluice.toml')
  writeFileSync(file, '')
  assert.equal(await isOne({}, file), false)
})

test('decoded shreds that are offered, or have a port, and that nothing decodes, are reported', () => {
  const inServe = (input: object) => {
    const config = configSchema.parse(input)
    return undecodedReason(config, servedSections(config))
  }
  const preview = { products: { 'shreds-decoded': { status: 'preview' } } }
  const entries = { bundle: { entries: { enabled: true } } }
  const off = { shreds: { enabled: false } }
  assert.deepEqual(
    [inServe({}), inServe(off), inServe(preview), inServe({ ...preview, ...entries })].filter(Boolean),
    [],
  )
  assert.match(inServe({ ...preview, ...off }) ?? '', /^products\.shreds-decoded is on, and this process has no shreds/)
  assert.match(inServe({ ...entries, ...off }) ?? '', /^bundle\.entries is on, and this process has no shreds/)
  assert.match(inServe(entries) ?? '', /^bundle\.entries is on, and serves nothing: set products\.shreds-decoded/)
  const alone = undecodedReason(configSchema.parse({ ...preview, ...entries }), ['metrics', 'access', 'bundle'])
  assert.match(alone ?? '', /^bundle\.entries and products\.shreds-decoded are on, and this process has no shreds/)
  assert.equal(undecodedReason(configSchema.parse(preview), ['metrics', 'sender']), undefined)
})
