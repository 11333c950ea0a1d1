import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startRedis } from '../../../test/support/machine/redis.ts'
import { createSeededRandom } from '../../core/random.ts'
import { Secret } from '../config/secret-ref.ts'
import { systemClock } from '../process/clock.ts'
import { until } from '../process/test-wait.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { createRedisScript, openRedis, pingRedis, type RedisOptions } from './redis.ts'

const ECHO = createRedisScript(`return { KEYS[1], ARGV[1], tonumber(ARGV[2]) }`)
const COUNT = createRedisScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)
const BROKEN = createRedisScript(`return redis.error_reply('BROKEN on purpose')`)

function open(options: RedisOptions) {
  const logged: { message: string; fields: object }[] = []
  const keep = (fields: object | string, message = '') => void logged.push({ message, fields: Object(fields) })
  const log = { ...silentLogger, warn: keep, info: keep, error: keep }
  return { link: openRedis(options, { clock: systemClock, log, random: createSeededRandom(1) }), logged }
}

describe('redis link', () => {
  test('runs scripts by their hash and sends the text once', async () => {
    await using server = await startRedis()
    const { link } = open({ url: server.url })
    await using _ = link
    await link.tried
    assert.deepEqual(await link.run(ECHO, ['k'], ['a', '7']), { ok: true, reply: ['k', 'a', 7] })
    const counts = await Promise.all(Array.from({ length: 100 }, () => link.run(COUNT, ['n'], ['2'])))
    assert.deepEqual(counts.at(-1), { ok: true, reply: 200 })
    const broken = await link.run(BROKEN, [], [])
    assert.ok(!broken.ok)
    assert.equal(broken.reason, 'refused')
    assert.match(broken.message, /BROKEN/)
    assert.equal(link.isUp(), true)
  })

  test('fails at once while the server is down, logs it once and reconnects', async () => {
    await using server = await startRedis()
    const { link, logged } = open({ url: server.url })
    await using _ = link
    await link.tried
    assert.equal((await link.run(COUNT, ['n'], ['1'])).ok, true)
    const waiting = Array.from({ length: 20 }, () => link.run(COUNT, ['n'], ['1']))
    await server.kill()
    for (const outcome of await Promise.all(waiting)) assert.ok(outcome.ok || outcome.reason === 'down')
    await until('the link to notice', () => !link.isUp())
    const outcome = await link.run(COUNT, ['n'], ['1'])
    assert.ok(!outcome.ok)
    assert.equal(outcome.reason, 'down')
    await server.start()
    await until('the link to come back', () => link.isUp())
    assert.deepEqual(await link.run(COUNT, ['n'], ['1']), { ok: true, reply: 1 })
    assert.deepEqual(
      logged.map(({ message }) => message),
      ['redis cannot be reached; retrying', 'redis is reachable again'],
    )
  })

  test('a user of the access control list, named in the address, is authenticated with the password', async () => {
    await using server = await startRedis({ password: 'of-default', user: { name: 'sluice', password: 'of-sluice' } })
    const url = server.url.replace('//', '//sluice@')
    const { link } = open({ url: `${url}/3`, password: new Secret('of-sluice') })
    await using _ = link
    await link.tried
    assert.deepEqual(await link.run(COUNT, ['n'], ['1']), { ok: true, reply: 1 })
    const sources = { env: { RIGHT: 'of-sluice', WRONG: 'of-default' } }
    await pingRedis({ url, password: 'env:RIGHT' }, sources, systemClock)
    await assert.rejects(pingRedis({ url, password: 'env:WRONG' }, sources, systemClock), /WRONGPASS/)
  })

  test('an address that cannot be used is refused at once, and ends no process', async () => {
    for (const url of ['redis://127.0.0.1:6379/cache', 'redis://127.0.0.1:70000']) {
      assert.throws(() => open({ url }), { code: 'config-invalid' })
      await assert.rejects(pingRedis({ url }, { env: {} }, systemClock), { code: 'config-invalid' })
    }
  })

  test('a server that does not reply counts as down', async () => {
    await using server = await startRedis()
    const { link } = open({ url: server.url, responseTimeoutMs: 200, connectTimeoutMs: 200 })
    await using _ = link
    await link.tried
    const pid = server.pid()
    assert.ok(pid !== undefined)
    process.kill(pid, 'SIGSTOP')
    const outcome = await link.run(COUNT, ['n'], ['1'])
    assert.deepEqual(outcome, { ok: false, reason: 'down', message: 'no reply in time' })
    process.kill(pid, 'SIGCONT')
    await until('the link to come back', () => link.isUp())
  })

  test('more commands than the maximum are refused, not queued', async () => {
    await using server = await startRedis()
    const { link } = open({ url: server.url, commandsMax: 10 })
    await using _ = link
    await link.tried
    const outcomes = await Promise.all(Array.from({ length: 15 }, () => link.run(COUNT, ['n'], ['1'])))
    assert.equal(outcomes.filter((outcome) => !outcome.ok && outcome.reason === 'busy').length, 5)
  })

  test('starts without a server, and logs nothing once closed', async () => {
    const { link, logged } = open({ url: 'redis://127.0.0.1:1' })
    await link.tried
    assert.equal(link.isUp(), false)
    await link[Symbol.asyncDispose]()
    assert.equal(logged.length, 1)
    assert.equal((await link.run(COUNT, ['n'], ['1'])).ok, false)
  })

  test('ping reports whether the server accepts the credentials', async () => {
    await using server = await startRedis({ password: 'correct-horse-battery' })
    const env = { GOOD: 'correct-horse-battery', BAD: 'wrong-horse-battery' }
    await pingRedis({ url: server.url, password: 'env:GOOD' }, { env }, systemClock)
    for (const position of [{ url: server.url, password: 'env:BAD' }, { url: 'redis://127.0.0.1:1' }])
      await assert.rejects(pingRedis(position, { env }, systemClock), { code: 'store-unavailable' })
  })

  test('accepts the right password, refuses a wrong one, and prints neither', async () => {
    await using server = await startRedis({ password: 'correct-horse-battery' })
    const good = open({ url: server.url, password: new Secret('correct-horse-battery') })
    await using _ = good.link
    await good.link.tried
    assert.equal((await good.link.run(COUNT, ['n'], ['1'])).ok, true)
    const bad = open({ url: server.url, password: new Secret('wrong-horse-battery') })
    await using _bad = bad.link
    await bad.link.tried
    assert.equal(bad.link.isUp(), false)
    assert.equal(JSON.stringify([...good.logged, ...bad.logged]).includes('horse'), false)
  })
})
