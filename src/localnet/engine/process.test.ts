import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createSeededRandom } from '../../core/random.ts'
import { startChild } from '../../platform/process/child.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { startEngineProcess } from './process.ts'
import type { EngineReply, EngineRequest } from './protocol.ts'

/** An engine that replies to each request with the number of its bytes, and dies on 0xff. */
const FAKE_ENGINE = `
process.on('message', (batch) => {
  if (batch.some(({ request }) => request.wire?.[0] === 0xff)) process.kill(process.pid, 'SIGKILL')
  else process.send(batch.map(({ seq, request }) => ({ seq, reply: request.wire?.length ?? null })))
})
`
const dir = mkdtempSync(join(tmpdir(), 'engine-'))
after(() => rmSync(dir, { recursive: true }))
const path = join(dir, 'fake-engine.mjs')
writeFileSync(path, FAKE_ENGINE)

const startFake = () => startChild(pathToFileURL(path))
const execute = (...bytes: number[]): EngineRequest => ({ op: 'execute', wire: Uint8Array.from(bytes), nonce: false })

async function start(
  options: { refill?: () => EngineRequest[]; windowMax?: number; startEngine?: typeof startFake } = {},
) {
  const { refill = () => [], windowMax = 256 } = options
  const deps = {
    clock: systemClock,
    random: createSeededRandom(1),
    log: silentLogger,
    refill,
    startChild: options.startEngine ?? startFake,
  }
  const engine = await startEngineProcess(deps, { windowMax, restart: { firstMs: 1, maxMs: 20 } })
  const ask = (request: EngineRequest) =>
    new Promise<EngineReply | 'engine-down'>((resolve) => engine.send(request, resolve))
  return { engine, ask, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() }
}

test('replies come in the order of the requests', async () => {
  await using host = await start({ windowMax: 3 })
  const order: unknown[] = []
  await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      host.ask(execute(...new Uint8Array(i + 1))).then((reply) => order.push(reply)),
    ),
  )
  assert.deepEqual(
    order,
    Array.from({ length: 20 }, (_, i) => i + 1),
  )
})

test('a request that kills the engine fails alone; the others run again', async () => {
  await using host = await start()
  const replies = await Promise.all([
    host.ask(execute(1)),
    host.ask(execute(1, 2)),
    host.ask(execute(0xff)),
    host.ask(execute(1, 2, 3)),
  ])
  assert.deepEqual(replies, [1, 2, 'engine-down', 3])
  assert.equal(await host.ask(execute(7)), 1)
  assert.equal(host.engine.restarts(), 2)
})

test('a new engine is filled before it gets requests', async () => {
  let fills = 0
  await using host = await start({
    refill: () => {
      fills++
      return [{ op: 'load', accounts: new Uint8Array(0) }]
    },
  })
  const pid = host.engine.pid() as number
  process.kill(pid, 'SIGKILL')
  assert.equal(await host.ask(execute(1)), 1)
  assert.notEqual(host.engine.pid(), pid)
  assert.equal(fills, 2)
})

test('a pause starts when no request is in flight and queues later ones', async () => {
  await using host = await start()
  const events: string[] = []
  const early = host.ask(execute(1)).then(() => events.push('early'))
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise<void>((resolve) => host.engine.pause(resolve))
  await early
  events.push('paused')
  const late = host.ask(execute(1)).then(() => events.push('late'))
  await new Promise((resolve) => setImmediate(resolve))
  events.push('resumed')
  host.engine.resume()
  await late
  assert.deepEqual(events, ['early', 'paused', 'resumed', 'late'])
})

test('a pause does not wait for an engine that is down', async () => {
  await using host = await start()
  host.engine.send(execute(0xff), () => {})
  await new Promise<void>((resolve) => host.engine.pause(resolve))
  host.engine.resume()
  assert.equal(await host.ask(execute(5)), 1)
})

test('an engine that does not start is an error at the first start and engine-down later', async () => {
  const broken = () => startChild(pathToFileURL(join(dir, 'absent.mjs')), { stderr: 'ignore' })
  await assert.rejects(
    start({ startEngine: broken, refill: () => [{ op: 'load', accounts: new Uint8Array(0) }] }),
    /does not start/,
  )

  let isBroken = false
  await using host = await start({
    startEngine: () => (isBroken ? broken() : startFake()),
    refill: () => [{ op: 'load', accounts: new Uint8Array(0) }],
  })
  isBroken = true
  process.kill(host.engine.pid() as number, 'SIGKILL')
  assert.equal(await host.ask(execute(1)), 'engine-down')
})

test('closing replies to queued requests and leaves no process behind', async () => {
  const host = await start()
  const pid = host.engine.pid() as number
  const pending = host.ask(execute(0xff))
  await host.engine[Symbol.asyncDispose]()
  assert.equal(await pending, 'engine-down')
  assert.equal(await host.ask(execute(1)), 'engine-down')
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
})
