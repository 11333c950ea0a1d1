import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { temporaryFolder } from '../../../../test/support/cli.ts'
import { takeInstanceLock } from '../../../platform/files/instance-lock.ts'
import { openStateFolder } from '../../../platform/files/state-folder.ts'
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

test('a port that needs a capability is checked by a connection where Sluice runs, and else the file that gives it is named', async () => {
  await using home = await temporaryFolder()
  await using server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const config = configSchema.parse({ bundle: { rpc: { listen: `0.0.0.0:${port}`, plaintext: 'behind-proxy' } } })
  // What the kernel reports for a port below 1024 to a user without the capability, in use or not.
  const open = async (_host: string, tried: number) => (tried === port ? 'EACCES' : undefined)
  const portOfRpc = async () => {
    const findings = await checkListeners(config, home.path, home.path, { open })
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
