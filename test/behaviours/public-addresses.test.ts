import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

/** Addresses for customers: configured, or those of a loopback listener; never made up. */

const PUBLIC = {
  SLUICE_BUNDLE__RPC__PLAINTEXT: 'behind-proxy',
  SLUICE_BUNDLE__WS__PLAINTEXT: 'behind-proxy',
  SLUICE_BUNDLE__GRPC__PLAINTEXT: 'behind-proxy',
  SLUICE_SENDER__PLAINTEXT: 'behind-proxy',
}

async function createSub(state: string, env: Record<string, string>): Promise<string> {
  await sluiceHere(['customer', 'add', 'acme', '--state', state], env)
  const words = ['sub', 'create', 'acme-prod', '--customer', 'acme', '--print-token', '--state', state]
  const created = await sluiceHere(words, env)
  assert.equal(created.code, 0, created.stderr)
  return created.stdout
}

async function post(url: string, headers: Record<string, string>): Promise<{ status: number; body: unknown }> {
  const response = await fetch(url, { method: 'POST', headers, body: '' })
  return { status: response.status, body: await response.json() }
}

test('with public addresses the card, the ticket and docs_url have them', async () => {
  await using home = await temporaryFolder()
  const env = {
    ...PUBLIC,
    SLUICE_BUNDLE__RPC__PUBLIC_URL: 'https://rpc.example.net',
    SLUICE_BUNDLE__WS__PUBLIC_URL: 'wss://rpc.example.net/ws',
    SLUICE_BUNDLE__GRPC__PUBLIC_URL: 'https://grpc.example.net',
    SLUICE_SENDER__PUBLIC_URL: 'https://send.example.net',
  }
  await using running = serve({ cwd: home.path, args: ['--no-demo'], env })
  await running.line(/"msg":"started"/)
  const card = await createSub(home.file('.sluice'), env)
  for (const line of [
    /^ {2}RPC +https:\/\/rpc\.example\.net$/m,
    /^ {2}WS +wss:\/\/rpc\.example\.net\/ws$/m,
    /^ {2}gRPC +https:\/\/grpc\.example\.net$/m,
    /^ {2}sender +https:\/\/send\.example\.net /m,
    /^ {2}docs +https:\/\/rpc\.example\.net\/docs\/$/m,
    /^ {2}export SLUICE_SEND=https:\/\/send\.example\.net$/m,
  ])
    assert.match(card, line)
  assert.doesNotMatch(card, /127\.0\.0\.1|localhost/)

  const rpc = `http://${await running.address('rpc')}`
  const token = /slc_[0-9A-Za-z]{38}/.exec(card)?.[0] ?? ''
  const ticket = await takeTicket(rpc, token)
  assert.equal(ticket['url'], `wss://rpc.example.net/ws/?ticket=${ticket['ticket']}`)
  const refused = (await post(rpc, { host: 'evil.example', 'content-type': 'application/json' })).body
  assert.equal(docsUrlIn(refused), 'https://rpc.example.net/docs/errors/unauthorized')
})

test('without them the card names the key to set, the ticket has no URL and errors no docs_url', async () => {
  await using home = await temporaryFolder()
  await using running = serve({ cwd: home.path, args: ['--no-demo'], env: PUBLIC })
  const warned = JSON.parse(await running.line(/"key":"bundle.rpc.publicUrl"/)) as { level: unknown; msg: string }
  assert.match(warned.msg, /no publicUrl configured/)
  await running.line(/"msg":"started"/)
  const card = await createSub(home.file('.sluice'), PUBLIC)
  for (const [label, key] of [
    ['RPC', 'bundle.rpc'],
    ['WS', 'bundle.ws'],
    ['gRPC', 'bundle.grpc'],
    ['sender', 'sender'],
  ])
    assert.match(card, new RegExp(`^  ${label} +\\(no publicUrl configured: set ${key}\\.publicUrl\\)$`, 'm'))
  assert.doesNotMatch(card, /127\.0\.0\.1|localhost|https?:/)

  const rpc = `http://${await running.address('rpc')}`
  const token = /slc_[0-9A-Za-z]{38}/.exec(card)?.[0] ?? ''
  assert.deepEqual(Object.keys(await takeTicket(rpc, token)), ['ticket', 'expires_at'])
  const refused = await post(rpc, { 'content-type': 'application/json' })
  assert.equal(refused.status, 401)
  assert.equal(docsUrlIn(refused.body), undefined)
})

test('the command line prints the ports that the running process has', async () => {
  await using home = await temporaryFolder()
  await using running = serve({ cwd: home.path, args: ['--no-demo'] })
  await running.line(/"msg":"started"/)
  // The command has no configuration that names a port.
  const card = await createSub(home.file('.sluice'), {})
  for (const [label, server] of [
    ['RPC', 'rpc'],
    ['WS', 'ws'],
    ['gRPC', 'grpc'],
    ['sender', 'sender'],
  ] as const)
    assert.match(card, new RegExp(`^  ${label} +(http|ws)://${await running.address(server)}( |$)`, 'm'))
})

test('a wrong address stops the start with the line, and doctor reports a missing one', async () => {
  await using home = await temporaryFolder()
  const config = home.file('sluice.toml')
  writeFileSync(config, '[sender]\nlisten = "127.0.0.1:0"\npublicUrl = "https://user:pw@send.example.net"\n', {
    mode: 0o600,
  })
  const checked = await sluiceHere(['config', 'check', '--config', config])
  assert.equal(checked.code, 78)
  assert.match(checked.stderr, /sluice\.toml:3.*sender\.publicUrl.*remove the user and password/s)

  writeFileSync(config, '[sender]\nlisten = "127.0.0.1:0"\nplaintext = "behind-proxy"\n', { mode: 0o600 })
  const { stdout } = await sluiceHere(['doctor', '--json', '--config', config, '--state', home.file('.sluice')])
  assert.match(stdout, /no sender\.publicUrl: handover cards/)
})

/** As soon as the process has loaded the new token. */
async function takeTicket(rpc: string, token: string): Promise<Record<string, string>> {
  let issued = await post(`${rpc}/v1/ws-ticket`, { 'x-token': token })
  await until('the token is known', async () => {
    if (issued.status !== 200) issued = await post(`${rpc}/v1/ws-ticket`, { 'x-token': token })
    return issued.status === 200
  })
  return issued.body as Record<string, string>
}

function docsUrlIn(body: unknown): string | undefined {
  return (body as { error: { data: { docs_url?: string } } }).error.data.docs_url
}
