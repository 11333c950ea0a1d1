import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { isServiceError, ServiceError } from '../../core/error.ts'
import { makeTestFolder } from '../files/test-folder.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { openControlClient } from './control-client.ts'
import { type ControlMethods, openControlSocket } from './control-socket.ts'
import { until } from './test-wait.ts'

let streamEnded = 0

const methods: ControlMethods = {
  status: () => ({ state: 'ok' }),
  nothing: () => undefined,
  echo: (params) => Promise.resolve(params),
  refuse() {
    throw new ServiceError('busy', 'not now', { fix: 'try later' })
  },
  crash: () => Promise.reject(new Error('boom slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2')),
  hang: () => new Promise(() => {}),
  large: () => 'x'.repeat(3 * 1024 * 1024),
  async *count(params) {
    for (let n = 0; n < (params as { to: number }).to; n++) yield n
  },
  async *forever(_params, { signal }) {
    try {
      while (!signal.aborted) {
        yield 'tick'
        await new Promise((resolve) => setImmediate(resolve))
      }
    } finally {
      streamEnded += 1
    }
  },
}

const open = (path: string) => openControlSocket(path, { log: silentLogger, methods })

test('calls, streams and errors; the file is private and goes away at the end', async () => {
  using position = makeTestFolder()
  const path = position.file('control.sock')
  {
    await using _control = await open(path)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    using client = await openControlClient(path)
    assert.deepEqual(await client.call('status'), { state: 'ok' })
    assert.equal(await client.call('nothing'), null)
    const many = await Promise.all([1, 2, 3].map((n) => client.call('echo', { n })))
    assert.deepEqual(many, [{ n: 1 }, { n: 2 }, { n: 3 }])
    const items: unknown[] = []
    for await (const item of client.stream('count', { to: 2000 })) items.push(item)
    assert.equal(items.length, 2000)
    assert.equal(items.at(-1), 1999)
    await assert.rejects(client.call('refuse'), (error) => isServiceError(error, 'busy') && error.fix === 'try later')
    await assert.rejects(
      client.call('crash'),
      (error) => isServiceError(error, 'internal') && !/QRSTUV/.test(error.message),
    )
    await assert.rejects(client.call('toString'), /does not know/)
    await assert.rejects(async () => {
      for await (const _ of client.stream('refuse')) assert.fail('no item')
    }, /not now/)
  }
  assert(!existsSync(path))
})

test('a client that stops reading a stream ends it in the process', async () => {
  using position = makeTestFolder()
  await using _control = await open(position.file('c'))
  const before = streamEnded
  using client = await openControlClient(position.file('c'))
  let seen = 0
  for await (const _ of client.stream('forever')) {
    seen += 1
    if (seen === 10) break
  }
  await until('the process has noticed', () => streamEnded === before + 1)
})

test('reports a process that does not run, one that closes the connection and one that does not respond', async () => {
  using position = makeTestFolder()
  const refused = (error: unknown) => isServiceError(error, 'control-unavailable') && /--state/.test(error.fix ?? '')
  await assert.rejects(openControlClient(position.file('none')), refused)
  await assert.rejects(openControlClient(join('/nowhere', 'x'.repeat(150))), refused)
  const control = await open(position.file('c'))
  const clock = createManualClock()
  using client = await openControlClient(position.file('c'), { clock, responseMsMax: 1000 })
  const awaitingResponse = client.call('hang')
  clock.advance(1000)
  await assert.rejects(awaitingResponse, /no response to hang/)
  const waiting = assert.rejects(client.call('hang'), refused)
  await control[Symbol.asyncDispose]()
  await waiting
  await assert.rejects(client.call('status'), refused)
})

test('a socket file left by a killed process is replaced', async () => {
  using position = makeTestFolder()
  writeFileSync(position.file('c'), '')
  await using _control = await open(position.file('c'))
  using client = await openControlClient(position.file('c'))
  assert.deepEqual(await client.call('status'), { state: 'ok' })
})

test('works in a state folder whose path is too long for a socket address', async () => {
  using position = makeTestFolder()
  const deep = join(position.path, 'x'.repeat(100), 'y'.repeat(100))
  mkdirSync(deep, { recursive: true })
  await using control = await open(join(deep, 'control.sock'))
  using client = await openControlClient(control.path)
  assert.deepEqual(await client.call('status'), { state: 'ok' })
})

test('lines that are not requests, are too long or too many at once get an error', async () => {
  using position = makeTestFolder()
  await using _control = await open(position.file('c'))
  async function send(text: string, responses: number): Promise<string[]> {
    const socket = connect(position.file('c')).on('error', () => {})
    let got = ''
    socket.on('data', (chunk) => {
      got += String(chunk)
    })
    socket.write(text)
    await until(`${responses} responses`, () => got.split('\n').length > responses)
    socket.destroy()
    return got.trimEnd().split('\n')
  }
  for (const bad of ['nonsense', '[]', 'null', '{"v":2,"id":1,"method":"status"}', '{"v":1,"method":"status"}']) {
    assert.match((await send(`${bad}\n`, 1))[0] ?? '', /bad-request/)
  }
  assert.match((await send('x'.repeat(300_000), 1))[0] ?? '', /at most 262144 bytes/)
  const hang = (id: number) => `{"v":1,"id":${id},"method":"hang"}\n`
  const responses = await send(
    `${Array.from({ length: 17 }, (_, id) => hang(id)).join('')}{"v":1,"id":99,"method":"status"}\n`,
    2,
  )
  assert.match(responses[0] ?? '', /"id":16.*busy/)
})

test('a connection beyond 64 is closed, and one is served again when another has ended', async () => {
  using position = makeTestFolder()
  await using _control = await open(position.file('c'))
  using opened = new DisposableStack()
  const openAndCall = async () => {
    const client = opened.use(await openControlClient(position.file('c')))
    assert.deepEqual(await client.call('status'), { state: 'ok' })
    return client
  }
  const first = await openAndCall()
  for (let more = 1; more < 64; more++) await openAndCall()
  await assert.rejects(openAndCall(), (error) => isServiceError(error, 'control-unavailable'))
  first[Symbol.dispose]()
  await until('one is served', () =>
    openAndCall().then(
      () => true,
      () => false,
    ),
  )
})

test('a connection that leaves more than 8 MiB unread is closed; one that reads later gets all of less', async () => {
  using position = makeTestFolder()
  await using _control = await open(position.file('c'))
  async function readLate(calls: number): Promise<{ lines: number; isClosed: boolean }> {
    const socket = connect(position.file('c')).on('error', () => {})
    let lines = 0
    let isClosed = false
    socket.on('close', () => (isClosed = true))
    socket.pause()
    for (let id = 0; id < calls; id++) socket.write(`{"v":1,"id":${id},"method":"large"}\n`)
    // Another connection is served meanwhile: the process has written what it will.
    using other = await openControlClient(position.file('c'))
    await other.call('status')
    socket.on('data', (chunk: Buffer) => (lines += chunk.filter((byte) => byte === 10).length))
    socket.resume()
    await until('all has come, or it is closed', () => isClosed || lines === calls)
    socket.destroy()
    return { lines, isClosed }
  }
  assert.deepEqual(await readLate(2), { lines: 2, isClosed: false })
  const { lines, isClosed } = await readLate(4)
  assert.ok(isClosed && lines < 3, `${lines} lines`)
})

test('errors while connections are accepted are logged, and the socket stays open', async () => {
  using position = makeTestFolder()
  const path = position.file('control.sock')
  const servers: Server[] = []
  const onListen = (message: unknown) => void servers.push((message as { server: Server }).server)
  subscribe('tracing:net.server.listen:asyncStart', onListen)
  const warnings: unknown[] = []
  const log = { ...silentLogger, warn: (...given: unknown[]) => void warnings.push(given.at(-1)) }
  await using _control = await openControlSocket(path, { log, methods })
  unsubscribe('tracing:net.server.listen:asyncStart', onListen)
  const [server] = servers
  // As Node emits it when the process has no file descriptor for a connection.
  for (let n = 0; n < 2; n++) server?.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' }))
  assert.deepEqual(warnings, Array(2).fill('control connection cannot be accepted'))
  using client = await openControlClient(path)
  assert.deepEqual(await client.call('status'), { state: 'ok' })
})
