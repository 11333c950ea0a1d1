import assert from 'node:assert/strict'
import { test } from 'node:test'
import { revokeTokens } from '../../src/access/provisioning/tokens.ts'
import { createManualClock } from '../../src/core/clock.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { reportTps, startTestExecution } from '../support/execution/start.ts'
import { openStream, refusedHandshake } from '../support/execution/stream-reader.ts'
import { startGateway } from '../support/gateway/start.ts'

test('auth = "token" accepts any token of the operator; the page and /health stay open', async () => {
  await using gateway = await startGateway([])
  const { access } = gateway
  const { token } = await gateway.subscribe({ products: ['indexer'] })
  await until('the store has reached the process', () => access.authenticate({ token }, 'execution', Date.now()).ok)
  await using service = await startTestExecution({ clock: systemClock, settings: { auth: 'token' }, deps: { access } })
  service.source.report(reportTps(3))
  const get = (path: string, headers: Record<string, string> = {}) => fetch(`${service.http}${path}`, { headers })

  const paths = ['/v1/tps', '/v1/status', '/v1/contention', '/v1/blocks/lifecycle', '/metrics']
  const history = ['/v1/history', '/v1/search', '/v1/contracts/0x', '/v1/blocks/1/transactions']
  for (const path of [...paths, ...history]) {
    const refused = await get(path)
    assert.equal(refused.status, 401, path)
    assert.equal(refused.headers.get('www-authenticate'), 'Bearer')
    assert.match(await refused.text(), /"code":-32401.*"reason":"missing"/)
    assert.notEqual((await get(path, { 'x-token': token })).status, 401)
    assert.notEqual((await get(path, { authorization: `Bearer ${token}` })).status, 401)
    // Not in the query, where it would be logged.
    assert.equal((await get(`${path}?api-key=${token}`)).status, 401)
  }
  for (const path of ['/', '/health']) assert.equal((await get(path)).status, 200, path)
  const post = (headers: Record<string, string>) =>
    fetch(service.http, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"jsonrpc":"2.0","id":1,"method":"eth_syncing","params":[]}',
    })
  assert.equal((await post({})).status, 401)
  assert.equal((await post({ 'x-token': token })).status, 200)

  const { status, body, headers } = await refusedHandshake(`${service.ws}/v1/ws`)
  assert.deepEqual([status, headers['www-authenticate']], [401, 'Bearer'])
  assert.match(body, /"reason":"missing"/)
  assert.equal((await refusedHandshake(`${service.ws}/v1/ws`, { 'x-token': token.slice(0, -1) })).status, 401)
  await using byHeader = await openStream(`${service.ws}/v1/ws`, { headers: { 'x-token': token } })
  await byHeader.until(2)

  // A ticket, for clients that cannot set headers.
  const caller = access.authenticate({ token }, 'execution', Date.now())
  assert(caller.ok)
  const askTicket = (given: Record<string, string>, method = 'POST') =>
    fetch(`${service.http}/v1/ws-ticket`, { method, headers: given })
  assert.equal((await askTicket({})).status, 401)
  assert.equal((await askTicket({ 'x-token': token }, 'GET')).status, 405)
  const responded = await askTicket({ 'x-token': token })
  assert.equal(responded.headers.get('cache-control'), 'no-store')
  const { ticket, expires_at } = (await responded.json()) as { ticket: string; expires_at: string }
  assert(Date.parse(expires_at) > Date.now() && !ticket.includes(token))
  await using byTicket = await openStream(`${service.ws}/v1/ws?ticket=${encodeURIComponent(ticket)}`)
  await byTicket.until(2)
  assert.equal((await refusedHandshake(`${service.ws}/v1/ws?ticket=x`)).status, 401)
  // Beside the token that it was made from.
  const withTicket = `${service.ws}/v1/ws?ticket=${encodeURIComponent(ticket)}`
  await using byBoth = await openStream(withTicket, { headers: { 'x-token': token } })
  await byBoth.until(2)
  const { token: other } = await gateway.subscribe({ products: ['indexer'] })
  assert.match((await refusedHandshake(withTicket, { 'x-token': other })).body, /do not belong together/)

  // Revoked: open streams are closed with code 4401.
  await revokeTokens(gateway.on, { subscription: caller.subscription.name })
  assert.equal((await byHeader.untilClosed()).code, 4401)
  assert.equal((await byTicket.untilClosed()).code, 4401)
})

test('auth = "token": refused tokens, unknown paths and preflights use up the budget of their address only', async () => {
  await using gateway = await startGateway([])
  const { access } = gateway
  const { token } = await gateway.subscribe({ products: ['indexer'] })
  await until('the store has reached the process', () => access.authenticate({ token }, 'execution', Date.now()).ok)
  for (const [path, method, status] of [
    ['/v1/tps', 'GET', 401],
    ['/v1/nothing', 'GET', 404],
    ['/v1/tps', 'OPTIONS', 204],
  ] as const) {
    const work = { unitsPerSecond: 10, burstUnits: 20 }
    await using service = await startTestExecution({
      clock: createManualClock(Date.now()),
      settings: { auth: 'token', work },
      deps: { access },
    })
    const statuses: number[] = []
    for (let at = 0; at < 30; at++) statuses.push((await fetch(`${service.http}${path}`, { method })).status)
    assert.deepEqual([...new Set(statuses)], [status, 429], path)
    assert.equal(statuses.filter((each) => each === status).length, 20)
    assert.equal((await fetch(`${service.http}/v1/tps`, { headers: { 'x-token': token } })).status, 200)
  }
})

test('auth = "token": handshakes with a refused token use up the budget of their address only', async () => {
  await using gateway = await startGateway([])
  const { access } = gateway
  const { token } = await gateway.subscribe({ products: ['indexer'] })
  await until('the store has reached the process', () => access.authenticate({ token }, 'execution', Date.now()).ok)
  await using service = await startTestExecution({
    clock: createManualClock(Date.now()),
    settings: { auth: 'token', work: { unitsPerSecond: 10, burstUnits: 20 } },
    deps: { access },
  })
  const statuses: number[] = []
  for (let at = 0; at < 22; at++) {
    const guess = { 'x-token': `slc_${String(at).padStart(38, '0')}` }
    statuses.push((await refusedHandshake(`${service.ws}/v1/ws`, guess)).status)
  }
  assert.deepEqual(statuses, [...Array(20).fill(401), 429, 429])
  await using _admitted = await openStream(`${service.ws}/v1/ws`, { headers: { 'x-token': token } })
})

test('auth = "token": a subscription has one budget across addresses and protocols', async () => {
  await using gateway = await startGateway([])
  const { access } = gateway
  const { token } = await gateway.subscribe({ products: ['indexer'] })
  const { token: other } = await gateway.subscribe({ products: ['indexer'] })
  const isKnown = (one: string) => access.authenticate({ token: one }, 'execution', Date.now()).ok
  await until('the store has reached the process', () => isKnown(token) && isKnown(other))
  const settings = {
    auth: 'token' as const,
    trustedProxies: ['127.0.0.1'],
    work: { unitsPerSecond: 10, burstUnits: 1000 },
  }
  await using service = await startTestExecution({ settings, deps: { access } })
  const get = (path: string, given: string, from: string) =>
    fetch(`${service.http}${path}`, { headers: { 'x-token': given, 'x-forwarded-for': from } })
  for (let count = 1; count <= 40; count++) assert.equal((await get('/metrics', token, `192.0.2.${count}`)).status, 200)
  assert.equal((await get('/v1/tps', token, '192.0.2.99')).status, 429)
  assert.equal((await get('/v1/tps', other, '192.0.2.1')).status, 200)
  const ticket = await fetch(`${service.http}/v1/ws-ticket`, { method: 'POST', headers: { 'x-token': token } })
  assert.equal(ticket.status, 429)
  const body = '{"jsonrpc":"2.0","id":1,"method":"eth_syncing","params":[]}'
  const headers = { 'x-token': token, 'content-type': 'application/json' }
  const called = await fetch(service.http, { method: 'POST', headers, body })
  assert.equal(called.status, 429)
  assert.equal((await refusedHandshake(`${service.ws}/v1/ws`, { 'x-token': token })).status, 429)
  assert.equal(
    (await get('/v1/tps', '', '192.0.2.1')).status,
    401,
    'a request without a token is charged to no subscription',
  )
})
