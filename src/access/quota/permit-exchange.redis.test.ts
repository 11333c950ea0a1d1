import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { createPermitModel } from '../../../test/support/access/permit-model.ts'
import type { PermitCommand, PermitReport } from '../../../test/support/access/permit-process.ts'
import { type RedisServer, startRedis } from '../../../test/support/machine/redis.ts'
import { crash } from '../../../test/support/process/crash.ts'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createRedisScript, openRedis } from '../../platform/db/redis.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { PERMIT_SCRIPT, parsePermits, permitArgs } from './permit-script.ts'
import { permitChunk, permitShare } from './permit-sharing.ts'
import { LIVE_SCRIPT } from './redis-script.ts'

const CHILD = join(import.meta.dirname, '../../../test/support/access/permit-process.ts')
/** Short enough for a test, and longer than a busy machine delays the heartbeat of each second. */
const SILENCE_MS = 4000
const link = (url: string) => openRedis({ url }, { clock: systemClock, log: silentLogger, random: secureRandom })

test('the scripts on a real server reply as the model does', async (t) => {
  const random = createRandom(seedOf(t))
  await using server = await startRedis()
  await using redis = link(server.url)
  await redis.tried
  const model = createPermitModel()
  /** No process is silent for that long here. */
  const silenceMsMax = 600_000
  const keysOf = (id: string) => ['live', `permits:${id}`, 'since']
  const seen = { heartbeats: 0, published: 0, sums: 0 }
  const run = async (script: typeof LIVE_SCRIPT, id: string, args: readonly string[]) => {
    const outcome = await redis.run(script, keysOf(id).slice(0, script === LIVE_SCRIPT ? 3 : 2), args)
    assert.ok(outcome.ok, JSON.stringify(outcome))
    return { real: outcome.reply, modelled: model.run(script, args, Date.now()) }
  }
  const steps = repeatsOf({ short: 1500, full: 20_000 })
  for (let step = 0; step < steps; step++) {
    const id = `p${random(4)}`
    if (random(4) === 0) {
      const { real, modelled } = await run(LIVE_SCRIPT, id, [
        id,
        String(silenceMsMax),
        random(5) === 0 ? 'leave' : 'stay',
      ])
      assert.ok(Array.isArray(real) && Array.isArray(modelled))
      assert.deepEqual(real.slice(0, 2), modelled.slice(0, 2), `heartbeat ${step}`)
      seen.heartbeats += 1
      continue
    }
    const permits = Array.from({ length: 1 + random(5) }, (_, at) => ({
      id: `sub_${(step + at) % 7}`,
      counts: [0, 1, 2].map(() => (random(2) === 0 ? 0 : random(30))),
    }))
    const args = permitArgs({ processId: id, silenceMsMax, keyStart: 'permits:' }, permits)
    const { real, modelled } = await run(PERMIT_SCRIPT, id, args)
    assert.deepEqual(real, modelled, `publication ${step}`)
    seen.published += 1
    seen.sums +=
      parsePermits(real, permits.length)
        ?.flat()
        .filter((sum) => sum > 0).length ?? 0
  }
  t.diagnostic(JSON.stringify(seen))
  assert.ok(seen.heartbeats > 100 && seen.sums > 100, JSON.stringify(seen))
})

test('the largest batch is one run of the script, and the permits of a silent process end by themselves', async () => {
  await using server = await startRedis()
  await using redis = link(server.url)
  await redis.tried
  const beat = (id: string, silence: number) =>
    redis.run(LIVE_SCRIPT, ['live', `permits:${id}`, 'since'], [id, String(silence), 'stay'])
  const publish = async (id: string, count: number, silenceMsMax: number) => {
    const permits = Array.from({ length: 256 }, (_, at) => ({ id: `sub_${at}`, counts: [count, 0, count] }))
    const args = permitArgs({ processId: id, silenceMsMax, keyStart: 'permits:' }, permits)
    const outcome = await redis.run(PERMIT_SCRIPT, ['live', `permits:${id}`], args)
    assert.ok(outcome.ok, JSON.stringify(outcome))
    return parsePermits(outcome.reply, 256)
  }
  await beat('a', 500)
  await beat('b', 500)
  await publish('a', 3, 500)
  assert.deepEqual((await publish('b', 1, 500))?.[255], [3, 0, 3])
  await until('those of a are released', async () => (await publish('b', 1, 500))?.[255]?.[0] === 0)
  const again = await beat('a', 500)
  assert.ok(again.ok && Array.isArray(again.reply))
  assert.equal(again.reply[1], 1, 'a has to publish everything again')
  // Heartbeats alone keep what is published; a publication alone does not stay for ever.
  await publish('a', 3, 500)
  await beat('a', 60_000)
  const ttl = createRedisScript("return redis.call('PTTL', KEYS[1])")
  const remains = async (key: string) => {
    const outcome = await redis.run(ttl, [key], [])
    return outcome.ok ? Number(outcome.reply) : Number.NaN
  }
  assert.ok((await remains('permits:a')) > 10_000)
  await publish('c', 3, 60_000)
  assert.ok((await remains('permits:c')) > 10_000)
})

function startProcess(url: string, id: string) {
  const args = [CHILD, url, id, String(SILENCE_MS)]
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  return {
    async call(command: PermitCommand): Promise<PermitReport> {
      child.stdin?.write(`${JSON.stringify(command)}\n`)
      return JSON.parse(String((await lines.next()).value))
    },
    kill: () => crash(child),
    [Symbol.asyncDispose]: () => crash(child),
  }
}

/** How long the server still counts the permits of a process that sends no more heartbeats. */
async function permitsLeftMs(url: string, processId: string): Promise<number> {
  await using redis = link(url)
  await redis.tried
  const script = createRedisScript(`
    local time = redis.call('TIME')
    local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
    local heartbeat = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
    return math.min(redis.call('PTTL', KEYS[2]), heartbeat + tonumber(ARGV[2]) - now)
  `)
  const keys = ['test:quota-processes', `test:permits:${processId}`]
  const outcome = await redis.run(script, keys, [processId, String(SILENCE_MS)])
  assert.ok(outcome.ok, JSON.stringify(outcome))
  return Number(outcome.reply)
}

/** Processes that know of each other, on a server whose data is old enough. */
async function startProcesses(stack: AsyncDisposableStack, server: RedisServer, count: number) {
  const processes = Array.from({ length: count }, (_, at) => stack.use(startProcess(server.url, `p${at}`)))
  const all = (command: PermitCommand) => Promise.all(processes.map((one) => one.call(command)))
  const openIn = async () => (await all({ do: 'look' })).reduce((sum, { own }) => sum + own, 0)
  const isShared = async () => (await all({ do: 'look' })).every((one) => one.isUp && one.processes === count)
  /** One process can open all of the limit, which it cannot while the server's data is too new. */
  const settle = async (limit: number) => {
    const [first] = processes
    assert.ok(first !== undefined)
    await until('all processes share', isShared)
    await until('one gets all', async () => (await first.call({ do: 'open', count: 1, limit })).own === limit)
    await all({ do: 'close', count: limit })
    await until('all is closed', async () => (await first.call({ do: 'look' })).known === 0)
  }
  return { processes, all, openIn, settle }
}

describe('processes on one server', () => {
  for (const count of [2, 3]) {
    test(`${count} of them: no storm exceeds the limit and the documented slack, and all of the limit is used`, async (t) => {
      const random = createRandom(seedOf(t))
      await using server = await startRedis()
      await using stack = new AsyncDisposableStack()
      const { all, openIn, settle, processes } = await startProcesses(stack, server, count)
      await settle(12)
      const sums: string[] = []
      const rounds = repeatsOf({ short: 8, full: 60 })
      for (let round = 0; round < rounds; round++) {
        // Another plan in each round. What is open from a higher limit stays; it is closed before the next.
        const limit = [1, 12, 60, 400][round % 4] as number
        const storms = processes.map((one) => one.call({ do: 'storm', seed: random(2 ** 31), steps: 600, limit }))
        await Promise.all(storms)
        const most = Math.min(count * limit, limit + count * permitChunk(limit, count))
        const sum = await openIn()
        assert.ok(sum <= most, `${sum} open of ${limit}, ${most} at most`)
        // After the storm the rest of the limit is given, and no more.
        await until('the limit is reached', async () => {
          await all({ do: 'open', count: 1, limit })
          return (await openIn()) >= limit
        })
        assert.ok((await openIn()) <= most)
        await until('all know it', async () => {
          const open = await openIn()
          return (await all({ do: 'look' })).every(({ own, known }) => own === 0 || known === open)
        })
        const before = await openIn()
        await Promise.all(
          processes.map(
            async (one) => (await one.call({ do: 'look' })).own > 0 && one.call({ do: 'open', count: 5, limit }),
          ),
        )
        assert.equal(await openIn(), before, 'at the limit a process that has permits gets no more')
        sums.push(`${sum}/${before} of ${limit}`)
        await all({ do: 'close', count: 10_000 })
        await until('all is closed', async () => (await all({ do: 'look' })).every(({ known }) => known === 0))
      }
      t.diagnostic(sums.join(', '))
    })
  }

  test('a killed process: what it had is free within the stated time, and not before', async (t) => {
    await using server = await startRedis()
    await using stack = new AsyncDisposableStack()
    const { processes, settle } = await startProcesses(stack, server, 2)
    const [a, b] = processes
    assert.ok(a !== undefined && b !== undefined)
    await settle(10)
    await until('a has nine', async () => (await a.call({ do: 'open', count: 1, limit: 9 })).own === 9)
    // One attempt: a second one before the reply with the sum would be within the chunk, and b would have two.
    await b.call({ do: 'open', count: 1, limit: 10 })
    await until('b knows them', async () => (await b.call({ do: 'look' })).known === 10)
    await a.kill()
    const fromMs = performance.now()
    const leftMs = await permitsLeftMs(server.url, 'p0')
    await until('b gets another', async () => (await b.call({ do: 'open', count: 1, limit: 10 })).own > 1)
    const tookMs = Math.round(performance.now() - fromMs)
    t.diagnostic(`free after ${tookMs} ms; by the server's clock after ${leftMs} ms`)
    // A busy machine delays heartbeats, so the server's record of the last one counts, and it delays the refresh.
    assert.ok(leftMs > 0 && tookMs >= leftMs - 1 && tookMs < SILENCE_MS + 11_000, `${tookMs} ms, ${leftMs} ms left`)
    await until('b gets all', async () => (await b.call({ do: 'open', count: 1, limit: 10 })).own === 10)
  })

  test('a server killed and restarted empty: each keeps its own and opens up to its share, and afterwards they are one again', async () => {
    await using server = await startRedis()
    await using stack = new AsyncDisposableStack()
    const { processes, all, openIn, settle } = await startProcesses(stack, server, 2)
    const [a, b] = processes
    assert.ok(a !== undefined && b !== undefined)
    await settle(10)
    await until('a has eight', async () => (await a.call({ do: 'open', count: 1, limit: 8 })).own === 8)
    await server.kill()
    await until('both notice', async () => (await all({ do: 'look' })).every(({ isUp }) => !isUp))
    const share = permitShare(10, 2)
    assert.equal((await a.call({ do: 'open', count: 20, limit: 10 })).own, 8)
    assert.equal((await b.call({ do: 'open', count: 20, limit: 10 })).own, share)
    await server.start()
    await until('both know all that is open', async () =>
      (await all({ do: 'look' })).every(({ isUp, known }) => isUp && known === 8 + share),
    )
    await all({ do: 'open', count: 20, limit: 10 })
    assert.equal(await openIn(), 8 + share, 'above the limit nothing is opened')
    await all({ do: 'close', count: 10 })
    await settle(10)
  })
})
