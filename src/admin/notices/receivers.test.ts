import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { type TestContext, test } from 'node:test'
import { startHttpServer } from '../../../test/support/machine/http-server.ts'
import { createManualClock } from '../../core/clock.ts'
import { Secret } from '../../platform/config/secret-ref.ts'
import { until } from '../../platform/process/test-wait.ts'
import type { Notice } from './notice.ts'
import { noticesOptions } from './options.ts'
import { createCommandReceiver, createWebhook } from './receivers.ts'

const NOTICE: Notice = { id: 'ntc_1', kind: 'node.down', atMs: Date.UTC(2026, 0, 1), message: 'm', data: {} }
const never = new AbortController().signal

/** A webhook and what it received; without a status it does not respond. */
async function setUp(t: TestContext, secrets: () => Promise<readonly Secret[]>, status?: number) {
  const received: IncomingMessage[] = []
  const server = await startHttpServer((request, response) => {
    received.push(request)
    if (status !== undefined) response.writeHead(status).end()
  })
  const clock = createManualClock()
  const url = `${server.url}/hook?team=ops`
  const hook = createWebhook({ name: 'ops', url }, { clock, version: '1.2.3', secrets })
  t.after(async () => {
    hook[Symbol.dispose]()
    await server[Symbol.asyncDispose]()
  })
  return { received, clock, hook }
}

test('each attempt has the time and the secrets of its own moment', async (t) => {
  let secret = 'old'
  const { received, clock, hook } = await setUp(t, async () => [new Secret(secret)], 204)
  assert.deepEqual(await hook.send(NOTICE, never), { ok: true })
  clock.advance(3_600_000)
  secret = 'new'
  await hook.send(NOTICE, never)
  const headers = received.map((request) => request.headers)
  const seconds = clock.nowMs() / 1000
  assert.deepEqual(
    headers.map((one) => one['webhook-timestamp']),
    [String(seconds - 3600), String(seconds)],
  )
  assert.notEqual(headers[0]?.['webhook-signature'], headers[1]?.['webhook-signature'])
  const [first] = received
  assert.deepEqual([first?.method, first?.url], ['POST', '/hook?team=ops'])
  assert.deepEqual([first?.headers['content-type'], first?.headers['user-agent']], ['application/json', 'sluice/1.2.3'])
})

test('a webhook that does not respond within 15 s has failed', async (t) => {
  const { received, clock, hook } = await setUp(t, async () => [new Secret('s')])
  const sending = hook.send(NOTICE, never)
  await until('the notice arrives', () => received.length === 1)
  clock.advance(14_999)
  assert.equal(clock.pendingTimers(), 1)
  clock.advance(1)
  assert.deepEqual(await sending, { ok: false, reason: 'no response within 15000 ms' })
})

test('without its secret a notice is not sent unsigned: the attempt has failed', async (t) => {
  const { received, hook } = await setUp(t, async () => Promise.reject(new Error('no such file: hook.secret')), 204)
  assert.deepEqual(await hook.send(NOTICE, never), { ok: false, reason: 'no such file: hook.secret' })
  assert.equal(received.length, 0)
})

test('a receiver gets the kinds that it is configured for, and tests', () => {
  const clock = createManualClock()
  const deps = { clock, version: '1', secrets: async () => [] }
  const options = { name: 'ops', url: 'http://127.0.0.1:9/' }
  for (const [receiver, expected] of [
    [createWebhook(options, deps), [true, true, true]],
    [createWebhook({ ...options, kinds: ['backup.missing'] }, deps), [false, true, true]],
    [createCommandReceiver({ command: ['x'], env: {} }, { clock }), [true, true, true]],
    [createCommandReceiver({ command: ['x'], env: {}, kinds: ['node.down'] }, { clock }), [true, false, true]],
  ] as const) {
    using one = receiver
    assert.deepEqual(
      (['node.down', 'backup.missing', 'test'] as const).map((kind) => one.accepts(kind)),
      expected,
    )
  }
})

test('receivers have names of their own: deliveries are counted by name', () => {
  const hook = (name: string) => ({ name, url: 'https://hooks.example.net/x', secrets: ['env:HOOK'] })
  const faultsOf = (...names: string[]) =>
    noticesOptions.safeParse({ webhooks: names.map(hook) }).error?.issues.map(({ message }) => message) ?? []
  assert.deepEqual(faultsOf('ops', 'ops-2'), [])
  assert.deepEqual(faultsOf('ops', 'other', 'ops'), [
    'notices.webhooks[0] is named ops too: give each a name of its own',
  ])
  assert.match(faultsOf('command').join(), /command is the name of the program/)
})
