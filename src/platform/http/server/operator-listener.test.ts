import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { get } from 'node:http'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { Secret } from '../../config/secret-ref.ts'
import { createLifecycle } from '../../process/lifecycle.ts'
import { silentLogger } from '../../telemetry/logger.ts'
import { createProcessRegistry } from '../../telemetry/process-metrics.ts'
import { startOperatorListener } from './operator-listener.ts'

async function start(bearer?: Secret, hosts: readonly string[] = []) {
  const clock = createManualClock()
  const registry = createProcessRegistry({ build: { version: '0.0.1' } })
  const life = createLifecycle({}, { clock, log: silentLogger })
  const listen = { host: '127.0.0.1', port: 0 }
  const server = await startOperatorListener(
    { listen, bearer, hosts },
    { log: silentLogger, registry, health: () => life.health(), clock },
  )
  const url = `http://127.0.0.1:${server.address.port}`
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(url + path, init)
    return { status: response.status, text: await response.text(), type: response.headers.get('content-type') ?? '' }
  }
  return {
    clock,
    life,
    port: server.address.port,
    ask,
    async [Symbol.asyncDispose]() {
      registry[Symbol.dispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

test('readiness follows the state and names the reasons; liveness is always 200', async () => {
  await using sluice = await start()
  const { life, ask, clock } = sluice
  assert.equal((await ask('/readyz')).status, 503)
  assert.equal((await ask('/healthz')).status, 200)
  life.started()
  assert.deepEqual(JSON.parse((await ask('/readyz')).text), {
    state: 'ok',
    ready: true,
    uptime_seconds: 0,
    reasons: [],
  })
  life.degraded('disk', 'full')
  clock.advance(7000)
  const degraded = await ask('/readyz')
  assert.equal(degraded.status, 200)
  assert.deepEqual(JSON.parse(degraded.text), {
    state: 'degraded',
    ready: true,
    uptime_seconds: 7,
    reasons: [{ part: 'disk', reason: 'full', age_seconds: 7 }],
  })
  life.stop('SIGTERM')
  assert.equal((await ask('/readyz')).status, 503)
  assert.match((await ask('/healthz')).text, /"state":"draining"/)
})

test('health requests have no side effects', async () => {
  await using sluice = await start()
  sluice.life.started()
  const before = (await sluice.ask('/healthz')).text
  for (let n = 0; n < 1000; n++) await sluice.ask(n % 2 === 0 ? '/readyz' : '/healthz')
  assert.equal((await sluice.ask('/healthz')).text, before)
})

test('serves metrics in the negotiated format, valid for promtool', async (t) => {
  await using sluice = await start()
  const classic = await sluice.ask('/metrics')
  assert.match(classic.type, /^text\/plain; version=0\.0\.4/)
  const open = await sluice.ask('/metrics', { headers: { accept: 'application/openmetrics-text; version=1.0.0' } })
  assert.match(open.type, /^application\/openmetrics-text/)
  assert(open.text.endsWith('# EOF\n'))
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: classic.text, encoding: 'utf8' })
  if (checked.error && 'code' in checked.error && checked.error.code === 'ENOENT') {
    t.skip('PROMTOOL IS NOT INSTALLED: install the Debian package "prometheus"')
    return
  }
  assert.equal(`${checked.stdout}${checked.stderr}${checked.status}`, '0')
})

test('refuses other paths and methods without echoing them', async () => {
  await using sluice = await start()
  const missing = await sluice.ask('/CANARY?x=CANARY')
  assert.equal(missing.status, 404)
  assert(!missing.text.includes('CANARY'))
  assert.equal((await sluice.ask('/readyz', { method: 'POST' })).status, 405)
  assert.equal((await sluice.ask('/readyz', { method: 'HEAD' })).text, '')
})

test('requires the bearer token for metrics, not for health', async () => {
  await using sluice = await start(new Secret('open-sesame'))
  assert.equal((await sluice.ask('/metrics')).status, 401)
  assert.equal((await sluice.ask('/metrics', { headers: { authorization: 'Bearer open-sesamo' } })).status, 401)
  assert.equal((await sluice.ask('/metrics', { headers: { authorization: 'Bearer open-sesame' } })).status, 200)
  assert.equal((await sluice.ask('/metrics', { headers: { authorization: 'bearer open-sesame' } })).status, 200)
  assert.equal((await sluice.ask('/metrics', { headers: { authorization: 'Basic open-sesame' } })).status, 401)
  assert.equal((await sluice.ask('/healthz')).status, 200)
})

test('refuses a request with a foreign Host (DNS rebinding)', async () => {
  await using sluice = await start(undefined, ['metrics.example'])
  const statusFor = (host: string, path: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const request = get({ port: sluice.port, host: '127.0.0.1', path, headers: { host } }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      request.on('error', reject)
    })
  for (const path of ['/metrics', '/healthz', '/readyz', '/other']) {
    assert.equal(await statusFor('evil.example:9464', path), 421, path)
    assert.notEqual(await statusFor('metrics.example:9464', path), 421, path)
    assert.notEqual(await statusFor(`localhost:${sluice.port}`, path), 421, path)
  }
})
