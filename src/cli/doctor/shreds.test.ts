import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { loadConfig } from '../../platform/config/file.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { type ConfigSection, configSchema } from '../../processes/compose/config/config.ts'
import { servedSections } from '../../processes/compose/config/served.ts'
import { bufferFinding, checkShreds } from './shreds.ts'

async function examined(env: Record<string, string>, sections?: readonly ConfigSection[]) {
  using folder = makeTestFolder()
  const loaded = await loadConfig({ schema: configSchema, env, file: undefined })
  return checkShreds(loaded.value, { stateDir: folder.path, sections: sections ?? servedSections(loaded.value) })
}

test('without a running process, tests the UDP port and the granted receive buffer', async () => {
  const findings = await examined({
    SLUICE_SHREDS__LISTEN: '127.0.0.1:0',
    SLUICE_SHREDS__RECEIVE_BUFFER_BYTES: String(64 * 1024),
  })
  assert.deepEqual(
    findings.map(({ check, level, message }) => [check, level, message]),
    [
      ['port', 'ok', 'UDP 127.0.0.1:0 is free'],
      ['shred buffer', 'ok', '64KiB'],
    ],
  )
})

test('finds a UDP port that another process uses', async () => {
  const other = createSocket('udp4')
  other.bind(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address()
  const [finding] = await examined({ SLUICE_SHREDS__LISTEN: `127.0.0.1:${port}` })
  other.close()
  assert.deepEqual([finding?.check, finding?.level], ['port', 'bad'])
  assert.match(finding?.message ?? '', new RegExp(`UDP 127\\.0\\.0\\.1:${port} .*EADDRINUSE`))
  assert.match(JSON.stringify(finding), new RegExp(`ss -lunp 'sport = :${port}'`))
})

test('reports a smaller receive buffer with both sizes and a fix', () => {
  assert.equal(bufferFinding(26_214_400, 26_214_400).level, 'ok')
  const finding = bufferFinding(212_992, 26_214_400)
  assert.equal(finding.level, 'warn')
  assert.match(finding.message, /208KiB of 25MiB/)
  assert.match(JSON.stringify(finding), /net\.core\.rmem_max=26214400/)
})

test('a disabled shred service has no checks', async () => {
  const findings = await examined({ SLUICE_SHREDS__ENABLED: 'false' })
  assert.deepEqual(
    findings.map(({ message }) => message),
    ['disabled'],
  )
  const env = { SLUICE_SHREDS__ENABLED: 'false', SLUICE_SHREDS__LISTEN: '127.0.0.1:0' }
  const [port] = await examined(env, ['metrics', 'access', 'shreds', 'upstreams'])
  assert.equal(port?.check, 'port', 'a process of its own runs it')
})
