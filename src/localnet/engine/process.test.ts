import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { systemClock } from '../../platform/process/clock.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { startEngineProcess } from './process.ts'
import type { EngineReply, EngineRequest } from './protocol.ts'

/** An engine that answers each request with the number of bytes it carries, and dies of 0xff. */
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

const forkFake = () => fork(path, [], { serialization: 'advanced', execArgv: [] })
const execute = (...bytes: number[]): EngineRequest => ({ op: 'execute', wire: Uint8Array.from(bytes), nonce: false })

async function start(options: { refill?: () => EngineRequest[]; windowMax?: number; fork?: typeof forkFake } = {}) {
  const { refill = () => [], windowMax = 256 } = options
  const deps = { clock: systemClock, log: silentLogger, refill, fork: options.fork ?? forkFake }
  const engine = await startEngineProcess(deps, { windowMax, restartDelayMs: 1, restartDelayMsMax: 20 })
  const ask = (request: EngineRequest) =>
    new Promise<EngineReply | 'engine-down'>((resolve) => engine.send(request, resolve))
  return { engine, ask, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() }
}

test('answers come in the order of the requests', async () => {
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

test('bytes that kill the engine cost that one request; the others run again', async () => {
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

test('a new engine is filled before it works', async () => {
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

test('a pause begins when nothing is in hand and holds back what comes', async () => {
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

test('an engine that never comes up is an error at the start and an answer later', async () => {
  const broken = () => fork(join(dir, 'absent.mjs'), [], { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  await assert.rejects(
    start({ fork: broken, refill: () => [{ op: 'load', accounts: new Uint8Array(0) }] }),
    /does not start/,
  )

  let isBroken = false
  await using host = await start({
    fork: () => (isBroken ? broken() : forkFake()),
    refill: () => [{ op: 'load', accounts: new Uint8Array(0) }],
  })
  isBroken = true
  process.kill(host.engine.pid() as number, 'SIGKILL')
  assert.equal(await host.ask(execute(1)), 'engine-down')
})

test('closing answers what waits and leaves no process behind', async () => {
  const host = await start()
  const pid = host.engine.pid() as number
  const pending = host.ask(execute(0xff))
  await host.engine[Symbol.asyncDispose]()
  assert.equal(await pending, 'engine-down')
  assert.equal(await host.ask(execute(1)), 'engine-down')
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
})
