import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { test } from 'node:test'
import { makeTestCert } from '../../src/platform/net/test-cert.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { SMALL, serve } from '../support/process/serve.ts'

test('the operator listener serves TLS with the configured files, reloads renewed ones, and requires its bearer token', async () => {
  await using home = await temporaryFolder()
  using files = makeTestCert('first')
  writeFileSync(home.file('secret'), 'let-me-in\n', { mode: 0o600 })
  const config = `[metrics]\nlisten = "127.0.0.1:0"\nbearer = "file:secret"\ntls = { cert = "${files.cert}", key = "${files.key}" }\n`
  writeFileSync(home.file('sluice.toml'), config)
  await using running = serve({ cwd: home.path, args: ['--no-demo'] })
  const address = await running.address('metrics')
  assert.equal((await get(address, '/readyz')).status, 200)
  assert.equal((await get(address, '/metrics')).status, 401)
  const { status, text, name } = await get(address, '/metrics', 'let-me-in')
  assert.equal(status, 200)
  assert.equal(name, 'first')
  assert.match(text, /^sluice_tls_not_after_timestamp_seconds\{listener="metrics",.*\} \d+/m)
  assert.ok(!running.stdout().includes('let-me-in'))

  files.renew('second')
  const deadline = performance.now() + 15_000
  while ((await get(address, '/readyz')).name !== 'second')
    assert.ok(performance.now() < deadline, 'the new certificate is not in use')

  const reasons = async () => {
    const { stdout } = await sluice(['status', '--json'], { cwd: home.path })
    return (JSON.parse(stdout) as { reasons: { part: string; reason: string }[] }).reasons
  }
  writeFileSync(files.cert, 'not a certificate')
  await until('the renewal that failed is reported', async () =>
    (await reasons()).some(({ part, reason }) => part === 'certificate of metrics' && /stays in use/.test(reason)),
  )
  files.renew('third')
  await until('it is over', async () => (await reasons()).length === 0)
})

test('refuses to start on a public address without TLS unless a proxy in front is configured', async () => {
  await using home = await temporaryFolder()
  const start = (toml: string) => {
    writeFileSync(home.file('sluice.toml'), toml)
    // The metrics address is that of the file; every other listener uses any port.
    const { SLUICE_METRICS__LISTEN: _ofFile, ...others } = SMALL
    return sluice(['serve'], { cwd: home.path, env: others })
  }
  const refused = await start('[metrics]\nlisten = "0.0.0.0:0"\n')
  assert.equal(refused.code, 78)
  assert.match(refused.stderr, /behind-proxy/)

  writeFileSync(home.file('sluice.toml'), '[metrics]\nlisten = "0.0.0.0:0"\nplaintext = "behind-proxy"\n')
  await using running = serve({ cwd: home.path, args: ['--no-demo'], env: { SLUICE_METRICS__LISTEN: '0.0.0.0:0' } })
  await running.line(/"msg":"started"/)
})

/** One request on a connection of its own; `name` is the subject of the certificate. */
function get(address: string, path: string, bearer?: string): Promise<{ status: number; text: string; name: string }> {
  return new Promise((resolve, reject) => {
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    const call = request(
      `https://${address}${path}`,
      { rejectUnauthorized: false, agent: false, headers },
      (response) => {
        const peer = (
          response.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } }
        ).getPeerCertificate()
        let text = ''
        response.on('data', (chunk: Buffer) => (text += chunk.toString()))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text, name: peer.subject.CN }))
      },
    )
    call.on('error', reject)
    call.end()
  })
}
