import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const REFUSED = 100

type Line = Readonly<Record<string, unknown>> & { readonly msg: string }

test('`logs tail --sub` shows the events of one customer in order, without secrets and without other customers', async () => {
  await using home = await temporaryFolder()
  await using running = serve({ cwd: home.path, args: ['--no-demo'] })
  await running.line(/"msg":"started"/)
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await sluice(words, { cwd: home.path })
    assert.equal(code, 0, stderr)
    return stdout
  }
  const tail = async (name: string) =>
    (await run('logs', 'tail', '--sub', name, '--lines', '100', '--json'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line)

  await run('customer', 'add', 'acme')
  for (const name of ['acme-prod', 'acme-test'])
    await run('sub', 'create', name, '--customer', 'acme', '--plan', 'starter', '--out', home.file(name))
  const token = /slc_[0-9A-Za-z]{38}/.exec(readFileSync(home.file('acme-prod'), 'utf8'))?.[0] ?? ''
  await run('sub', 'limit', 'acme-prod', '--ws-connections', '1')
  // The process reads the change from the store a moment later.
  await until('the limit is logged', async () => (await tail('acme-prod')).some(({ action }) => action === 'sub.limit'))

  const url = `ws://${await running.address('ws')}/`
  const headers = { 'x-token': token }
  const socket = new WebSocket(url, { headers })
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  await new Promise((resolve) => socket.on('open', resolve))
  // A hundred refusals by the limit give one line per second.
  for (let refused = 0; refused < REFUSED; refused++) {
    const second = new WebSocket(url, { headers })
    const status = await new Promise((resolve) => {
      second.on('unexpected-response', (_request, response) => resolve(response.statusCode))
      second.on('open', () => resolve('open'))
    })
    second.on('error', () => {}).terminate()
    assert.equal(status, 429)
  }
  await run('token', 'rotate', 'acme-prod', '--yes', '--out', home.file('second'))
  assert.equal(await closed, 4401)

  await until('its end is logged', async () => (await tail('acme-prod')).some(({ msg }) => msg === 'disconnected'))
  const lines = await tail('acme-prod')
  const find = (msg: string, fields: object) =>
    lines.findIndex((line) => line.msg === msg && Object.entries(fields).every(([name, value]) => line[name] === value))
  const story = [
    find('changed by the operator', { action: 'sub.create' }),
    find('changed by the operator', { action: 'sub.limit' }),
    find('connected', { interface: 'ws', remote: '127.0.0.1' }),
    find('refused', { limit: 'wsConnections', size: 1, code: -32429 }),
    find('disconnected', { interface: 'ws', code: 4401, reason: 'token revoked' }),
  ]
  assert.ok(!story.includes(-1), JSON.stringify(lines, null, 1))
  assert.deepEqual(
    story,
    story.toSorted((a, b) => a - b),
  )
  assert.notEqual(find('changed by the operator', { action: 'token.rotate' }), -1)
  assert.notEqual(find('refused', { reason: 'revoked', code: -32401 }), -1)

  const overLimit = lines.filter(({ limit }) => limit === 'wsConnections')
  const reported = overLimit.reduce((sum, { count }) => sum + (typeof count === 'number' ? count : 1), 0)
  assert.equal(reported, REFUSED, 'each is counted')
  assert.ok(overLimit.length <= REFUSED / 2, `${overLimit.length} lines`)
  assert.doesNotMatch(JSON.stringify(lines), /slc_/)

  const others = await tail('acme-test')
  assert.deepEqual(
    others.map(({ msg, action }) => [msg, action]),
    [
      ['changed by the operator', 'customer.add'],
      ['changed by the operator', 'sub.create'],
    ],
  )
})
