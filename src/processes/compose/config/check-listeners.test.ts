import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkListenerFiles } from './check-listeners.ts'
import { configSchema } from './config.ts'

test('a fault of a certificate that several listeners use is one finding that names them', async () => {
  const tls = { cert: 'nowhere.pem', key: 'nowhere.key' }
  const config = configSchema.parse({
    bundle: { rpc: { tls }, ws: { tls }, grpc: { tls } },
    sender: { tls },
    indexer: { enabled: true, tls: { ...tls, cert: 'other.pem' } },
  })
  const findings = (await checkListenerFiles(config, '/')).filter(({ check }) => check === 'certificate')
  assert.equal(findings.length, 2)
  const [shared, other] = findings
  assert.match(
    shared?.message ?? '',
    /^bundle\.rpc, bundle\.ws, bundle\.grpc, sender: certificate or key cannot be read/,
  )
  assert.match(
    shared !== undefined && 'fix' in shared ? shared.fix : '',
    /set bundle\.rpc\.tls, bundle\.ws\.tls, bundle\.grpc\.tls, sender\.tls$/,
  )
  assert.match(other?.message ?? '', /^indexer: /)
})
