import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { CHECK_MS, memoryFile, nodeDown, setUpNotices } from '../../../test/support/admin/notices.ts'
import { Secret } from '../../platform/config/secret-ref.ts'
import { type Logger, silentLogger } from '../../platform/telemetry/logger.ts'
import { noticeHandlers } from './handlers.ts'
import { createCommandReceiver, createWebhook } from './receivers.ts'
import type { Notices } from './service.ts'

const HOUR_MS = 3_600_000

type Received = { readonly headers: IncomingMessage['headers']; readonly body: string }

/** A receiver of webhooks that responds with the statuses in turn, and with the last one from then on. */
async function openReceiver(...statuses: number[]) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => respond(request, response, body))
  })
  function respond(request: IncomingMessage, response: ServerResponse, body: string): void {
    received.push({ headers: request.headers, body })
    response.statusCode = (statuses.length > 1 ? statuses.shift() : statuses[0]) as number
    if (response.statusCode === 302) response.setHeader('location', '/elsewhere')
    response.end()
    server.emit('received')
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?team=ops`
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url, received, next: () => once(server, 'received'), [Symbol.dispose]: close }
}

/** Lets real sockets make progress until the condition holds. */
async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 5000 && !condition(); turn++) await new Promise((resolve) => setTimeout(resolve, 2))
  assert.ok(condition(), 'the condition did not come true')
}

const stateOf = (notices: Notices) => notices.list().flatMap(({ deliveries }) => deliveries.map(({ state }) => state))

test('a condition causes one notice, signed, for as long as it holds; another one when it comes back', async () => {
  using hook = await openReceiver(204)
  const secrets = [`whsec_${Buffer.from('first').toString('base64')}`, 'second']
  const { clock, start, set } = setUpNotices((clock) => [
    createWebhook(
      { name: 'ops', url: hook.url },
      { clock, version: '1', secrets: async () => secrets.map((text) => new Secret(text)) },
    ),
  ])
  await using notices = await start()
  set([nodeDown('fra-1')])
  await clock.advanceAsync(CHECK_MS)
  await until(() => stateOf(notices).includes('delivered'))
  for (let at = 0; at < 4; at++) await clock.advanceAsync(CHECK_MS)
  assert.equal(hook.received.length, 1)
  const { headers, body } = hook.received[0] as Received
  assert.deepEqual(JSON.parse(body), {
    id: notices.list()[0]?.id,
    type: 'node.down',
    timestamp: new Date(notices.list()[0]?.atMs ?? 0).toISOString(),
    message: 'node fra-1 is failing',
    data: { node: 'fra-1' },
  })
  const signed = [headers['webhook-id'], headers['webhook-timestamp'], body].join('.')
  const sign = (key: string) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  assert.equal(headers['webhook-signature'], `${sign('first')} ${sign('second')}`)
  assert.equal(headers['webhook-id'], notices.list()[0]?.id)

  set([])
  await clock.advanceAsync(CHECK_MS)
  set([nodeDown('fra-1')])
  await clock.advanceAsync(CHECK_MS)
  await until(() => stateOf(notices).filter((state) => state === 'delivered').length === 2)
  assert.equal(hook.received.length, 2)
})

test('a receiver that fails gets its notices later and in order, and delays no other', async () => {
  using broken = await openReceiver(500, 302, 204)
  using good = await openReceiver(200)
  const { clock, start, set } = setUpNotices((clock) =>
    [broken, good].map(({ url }, at) =>
      createWebhook({ name: `hook-${at}`, url }, { clock, version: '1', secrets: async () => [new Secret('s')] }),
    ),
  )
  await using notices = await start()
  set([nodeDown('a'), nodeDown('b')])
  await clock.advanceAsync(CHECK_MS)
  await until(() => good.received.length === 2 && broken.received.length === 1)
  const waiting = () =>
    notices.list().flatMap(({ deliveries }) => deliveries.filter(({ state }) => state === 'waiting'))
  await until(() => waiting().some(({ lastFailure }) => lastFailure === 'the receiver responded with status 500'))
  const attemptsOf = (name: string) =>
    notices
      .list()
      .flatMap(({ deliveries }) => deliveries.filter(({ receiver }) => receiver === name))
      .reduce((sum, { attempts }) => sum + attempts, 0)
  // A redirect is not followed: the signature is for this receiver alone.
  await until(() => attemptsOf('hook-0') === 1 && attemptsOf('hook-1') === 2)
  await clock.advanceAsync(CHECK_MS)
  await until(() => attemptsOf('hook-0') === 2)
  await clock.advanceAsync(CHECK_MS)
  await until(() => waiting().length === 0)
  const ids = broken.received.map(({ headers }) => headers['webhook-id'])
  assert.deepEqual(
    [...new Set(ids)],
    notices
      .list()
      .map(({ id }) => id)
      .toReversed(),
  )
  assert.equal(good.received.length, 2)
})

test('what waits and what was already notified survive a restart', async () => {
  using hook = await openReceiver(503, 204)
  const { clock, start, set } = setUpNotices((clock) => [
    createWebhook({ name: 'ops', url: hook.url }, { clock, version: '1', secrets: async () => [new Secret('s')] }),
  ])
  {
    await using notices = await start()
    set([nodeDown('a')])
    await clock.advanceAsync(CHECK_MS)
    await until(() => (notices.list()[0]?.deliveries[0]?.attempts ?? 0) === 1)
  }
  await using notices = await start()
  await clock.advanceAsync(CHECK_MS)
  await until(() => stateOf(notices).includes('delivered'))
  assert.equal(notices.list().length, 1, 'the condition held all the time')
  assert.equal(hook.received[0]?.headers['webhook-id'], hook.received[1]?.headers['webhook-id'])
})

test('a notice is given up when the receiver is gone, or after the configured time', async () => {
  using gone = await openReceiver(410)
  using late = await openReceiver(500)
  const { clock, start, set } = setUpNotices((clock) =>
    [gone, late].map(({ url }, at) =>
      createWebhook({ name: `hook-${at}`, url }, { clock, version: '1', secrets: async () => [new Secret('s')] }),
    ),
  )
  await using notices = await start()
  set([nodeDown('a')])
  await clock.advanceAsync(CHECK_MS)
  await until(() => stateOf(notices)[0] === 'given-up' && late.received.length === 1)
  await until(() => notices.list()[0]?.deliveries[1]?.attempts === 1)
  await clock.advanceAsync(HOUR_MS + 4 * CHECK_MS)
  await until(() => stateOf(notices)[1] === 'given-up')
})

test('a command gets the notice on its standard input; its failure has a reason', async () => {
  const script = (text: string) => [process.execPath, '-e', text]
  const { clock, start } = setUpNotices((clock) => [
    createCommandReceiver(
      {
        command: script(
          "let text='';process.stdin.on('data',(part)=>text+=part).on('end',()=>{const {type}=JSON.parse(text);console.error(type,Object.keys(process.env).includes('SECRET'));process.exit(3)})",
        ),
        env: {},
      },
      { clock },
    ),
  ])
  process.env['SECRET'] = 'x'
  await using notices = await start()
  await notices.test()
  await until(() => notices.list()[0]?.deliveries[0]?.lastFailure !== null)
  assert.match(notices.list()[0]?.deliveries[0]?.lastFailure ?? '', /ended with code 3: test false$/)
  assert.ok(clock.monotonicMs() === 0)
})

test('closing ends an attempt under way, and the notice waits for the next start', async () => {
  const server = createServer(() => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const { start, file } = setUpNotices((clock) => [
    createWebhook({ name: 'ops', url }, { clock, version: '1', secrets: async () => [new Secret('s')] }),
  ])
  const notices = await start()
  const asked = once(server, 'request')
  await notices.test()
  await asked
  await notices[Symbol.asyncDispose]()
  assert.deepEqual(stateOf(notices), ['waiting'])
  assert.equal(notices.list()[0]?.deliveries[0]?.attempts, 0, 'an attempt that we ended is none')
  assert.match(file.text ?? '', /"state":"waiting"/)
  server.closeAllConnections()
  server.close()
})

test('the route pages through the notices, newest first', async () => {
  const { start } = setUpNotices(() => [])
  await using notices = await start()
  for (let at = 0; at < 5; at++) await notices.test()
  const { notices: handler } = noticeHandlers(notices)
  const page = async (query: string) => {
    const reply = await handler({ query: new URLSearchParams(query) } as never)
    return reply.body as { items: { id: string }[]; next_cursor: string | null }
  }
  const first = await page('limit=3')
  const second = await page(`limit=3&cursor=${first.next_cursor}`)
  assert.equal(second.next_cursor, null)
  assert.deepEqual(
    [...first.items, ...second.items].map(({ id }) => id),
    notices.list().map(({ id }) => id),
  )
  await assert.rejects(page('limit=0'), /whole number/)
})

test('very many new notices are logged in slices of the event loop', async () => {
  let [logged, atOnce, most] = [0, 0, 0]
  const log: Logger = {
    ...silentLogger,
    child: () => log,
    info() {
      const startedMs = performance.now()
      while (performance.now() - startedMs < 1);
      logged += 1
      atOnce += 1
      most = Math.max(most, atOnce)
    },
  }
  const { clock, start, set } = setUpNotices(() => [], memoryFile(), log)
  await using _notices = await start()
  set(Array.from({ length: 200 }, (_, n) => nodeDown(`n${n}`)))
  let isOver = false
  const watch = (): void => {
    atOnce = 0
    if (!isOver) setImmediate(watch)
  }
  watch()
  await clock.advanceAsync(CHECK_MS)
  await until(() => logged === 200)
  isOver = true
  assert.ok(most < 50, `${most} lines in one turn`)
})
