import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { temporaryFolder } from '../../../../test/support/cli/run.ts'
import { takeInstanceLock } from '../../../platform/files/instance-lock.ts'
import { openStateFolder } from '../../../platform/files/state-folder.ts'
import { makeTestCert } from '../../../platform/net/test-cert.ts'
import { checkListenerFiles, checkListeners } from './check-listeners.ts'
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

test('a certificate that no server can use is a fault: behind its chain, with a damaged chain, or with a key that is too short', async () => {
  using own = makeTestCert()
  using authority = makeTestCert('authority')
  const findings = async (tls: { cert: string; key: string }) => {
    const config = configSchema.parse({ bundle: { rpc: { tls } } })
    const found = (await checkListenerFiles(config, '/')).filter(({ check }) => check === 'certificate')
    return found.map(({ level, message, ...rest }) => ({ level, message, fix: 'fix' in rest ? rest.fix : '' }))
  }
  const { cert, key } = own
  const [leaf, signer] = [readFileSync(cert, 'utf8'), readFileSync(authority.cert, 'utf8')]
  writeFileSync(cert, leaf + signer)
  assert.equal((await findings({ cert, key }))[0]?.level, 'ok')
  writeFileSync(cert, signer + leaf)
  const [behind] = await findings({ cert, key })
  assert.match(
    behind?.message ?? '',
    /^bundle\.rpc: the certificate of .*key\.pem is in .*cert\.pem, but not as the first$/,
  )
  assert.match(behind?.fix ?? '', /^put it first/)
  writeFileSync(cert, signer)
  assert.match((await findings({ cert, key }))[0]?.message ?? '', /is not the key of/)
  writeFileSync(cert, `${leaf}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`)
  assert.equal((await findings({ cert, key }))[0]?.level, 'bad')

  const short = ['req', '-x509', '-newkey', 'rsa:1024', '-nodes', '-days', '90', '-subj', '/CN=localhost']
  execFileSync('openssl', [...short, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const [weak] = await findings({ cert, key })
  assert.equal(weak?.level, 'bad')
  assert.match(weak?.message ?? '', /too small/)
})

test('a port that needs a capability is checked by a connection where Sluice runs, and else the file that gives it is named', async () => {
  await using home = await temporaryFolder()
  await using server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const config = configSchema.parse({ bundle: { rpc: { listen: `0.0.0.0:${port}`, plaintext: 'behind-proxy' } } })
  // What the kernel reports for a port below 1024 to a user without the capability, in use or not.
  const open = async (_host: string, tried: number) => (tried === port ? 'EACCES' : undefined)
  const portOfRpc = async () => {
    const findings = await checkListeners(config, { folder: home.path, stateDir: home.path }, { open })
    return findings.find(({ check, message }) => check === 'port' && message.includes(`0.0.0.0:${port}`))
  }
  const stopped = await portOfRpc()
  assert.equal(stopped?.level, 'bad', 'another process may listen there')
  assert.match('fix' in stopped ? stopped.fix : '', /port-443\.conf/)
  using _running = takeInstanceLock(await openStateFolder(home.path))
  const message = `0.0.0.0:${port} is in use by Sluice`
  assert.deepEqual(await portOfRpc(), { level: 'ok', check: 'port', message })
  server.close()
  await once(server, 'close')
  assert.equal((await portOfRpc())?.level, 'bad', 'the running process does not listen there')
})

test('a service behind a proxy that it does not trust is a warning', async () => {
  const sender = { listen: '0.0.0.0:8901', plaintext: 'behind-proxy' }
  const found = async (more: object) => {
    const config = configSchema.parse({ sender: { ...sender, ...more }, metrics: { plaintext: 'behind-proxy' } })
    return (await checkListenerFiles(config, '/')).filter(({ check }) => check === 'proxy')
  }
  const [finding, ...others] = await found({})
  assert.deepEqual([finding?.level, others], ['warn', []])
  assert.match(finding?.message ?? '', /^sender is behind a proxy and sender\.trustedProxies is empty/)
  assert.deepEqual(await found({ trustedProxies: ['10.0.0.1'] }), [])
})
