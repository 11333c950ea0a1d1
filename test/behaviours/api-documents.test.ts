import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { createConfig, lint } from '@redocly/openapi-core'
import type { z } from 'zod'
import * as customer from '../../src/contract/schemas/customer.ts'
import * as execution from '../../src/contract/schemas/execution.ts'
import * as histories from '../../src/contract/schemas/execution-history.ts'
import { conflictData, contentionData, STREAM_FRAMES, topAccesses } from '../../src/contract/schemas/stream.ts'
import { startRingWriter } from '../../src/localnet/ring/writer-service.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { startExecutionOverRing } from '../support/execution/over-ring.ts'
import { openStream } from '../support/execution/stream-reader.ts'
import { startGateway } from '../support/gateway/start.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

/** The OpenAPI and AsyncAPI documents: valid by an independent validator, and matched by the responses of the servers. */

const DOCS = join(import.meta.dirname, '../../docs')

function check<Body>(schema: z.ZodType<Body>, body: unknown, what: string): Body {
  const read = schema.safeParse(body)
  assert.ok(read.success, `${what}: ${read.error?.message}\n${JSON.stringify(body).slice(0, 400)}`)
  return read.data
}

/** The field names of a response in docs/api.md, which lists them as `{"a","b"}`. */
function documentedFields(listed: RegExp): string[] {
  const [, fields] = listed.exec(readFileSync(join(DOCS, 'api.md'), 'utf8')) ?? assert.fail(`${listed} is not there`)
  return JSON.parse(`[${fields}]`) as string[]
}

async function getJson(url: string, headers: Record<string, string> = {}): Promise<unknown> {
  const response = await fetch(url, { headers })
  assert.equal(response.status, 200, url)
  return response.json()
}

describe('the API descriptions', () => {
  for (const folder of ['openapi', 'asyncapi']) {
    for (const file of readdirSync(join(DOCS, folder))) {
      test(`${folder}/${file} is valid`, async () => {
        const config = await createConfig({ extends: ['recommended'] })
        const problems = await lint({ ref: join(DOCS, folder, file), config })
        // The documents name a local server: the host of the operator is unknown.
        const kept = problems.filter(
          ({ ruleId, location }) =>
            ruleId !== 'no-server-example.com' &&
            // The paths of sign-in send a browser elsewhere: their only success is a redirect.
            !(ruleId === 'operation-2xx-response' && location[0]?.pointer?.startsWith('#/paths/~1v1~1oidc~1') === true),
        )
        assert.deepEqual(
          kept.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`),
          [],
        )
      })
    }
  }

  test('every response and every frame of the execution service matches its schema', async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    const deps = { log: silentLogger, clock: systemClock }
    await using _writer = await startRingWriter({ path, blockMs: 50, tps: 400, seed: 5 }, deps)
    await using service = await startExecutionOverRing(path)
    const kinds = 'TPS,ContentionData,TopAccesses,Lifecycle,ConflictData,TxnLog,BlockStart'
    await using reader = await openStream(`${service.ws}/v1/ws?subscribe=${kinds}`)
    const seen = () => new Set(reader.frames.map((frame) => Object.keys(frame)[1]))
    await until('every kind came', () => seen().size >= 7, 30_000)
    reader.send({ subscribe: ['TPS'] })
    reader.send({ subscribe: ['nothing like it'] })
    await until('the subscribe has its response', () => seen().has('Subscribed') && seen().has('Error'))
    for (const frame of reader.frames) {
      const [, kind] = Object.keys(frame) as [string, keyof typeof STREAM_FRAMES]
      check<unknown>(STREAM_FRAMES[kind], frame, kind)
    }

    check(execution.tpsRecord, await getJson(`${service.http}/v1/tps`), 'tps')
    check(contentionData, await getJson(`${service.http}/v1/contention`), 'contention')
    check(conflictData, await getJson(`${service.http}/v1/conflicts`), 'conflicts')
    check(topAccesses, await getJson(`${service.http}/v1/top-accesses`), 'top accesses')
    check(execution.statusRecord, await getJson(`${service.http}/v1/status`), 'status')
    check(execution.healthRecord, await getJson(`${service.http}/health`), 'health')
    check(execution.recentBlocks, await getJson(`${service.http}/v1/blocks?count=5`), 'blocks')
    const records = (await getJson(`${service.http}/v1/blocks/lifecycle`)) as { block_number: number }[]
    assert.ok(records.length > 0)
    for (const record of records) check(execution.lifecycleRecord, record, 'lifecycle')
    const number = ((await getJson(`${service.http}/v1/contention`)) as { block_number: number }).block_number
    check(contentionData, await getJson(`${service.http}/v1/blocks/${number}/contention`), 'contention of a block')
    await checkHistory(service.http, number)
    const missing = await fetch(`${service.http}/v1/blocks/999999999/lifecycle`)
    assert.equal(missing.status, 404)
    check(execution.routeError, await missing.json(), 'an error')
  })

  test('the account endpoints of a customer match their schemas', async () => {
    await using chain = await startQuickLocalnet()
    const { host, port } = chain.rpc
    await using gateway = await startGateway([{ name: 'n', rpc: `http://${host}:${port}` }])
    const { token } = await gateway.subscribe({})
    const headers = { 'x-token': token, 'content-type': 'application/json' }
    const post = (path: string, body = '') => fetch(`${gateway.url}${path}`, { method: 'POST', headers, body })
    check(customer.whoamiRecord, await getJson(`${gateway.url}/v1/whoami`, headers), 'whoami')
    check(customer.connectionList, await getJson(`${gateway.url}/v1/connections`, headers), 'connections')
    const ticket = (await (await post('/v1/ws-ticket')).json()) as object
    check(customer.wsTicket, ticket, 'ticket')
    assert.deepEqual(Object.keys(ticket), documentedFields(/\| POST \| \/v1\/ws-ticket \|[^`]*`\{([^}]*)\}`/))
    check(customer.geyserCheck, await (await post('/v1/geyser/check', '{"slots":{"a":{}}}')).json(), 'check')
    check(customer.pageError, await (await post('/v1/connections/none/close')).json(), 'not found')
    const call = await post('/', '{"jsonrpc":"2.0","id":1,"method":"getSlot"}')
    check(customer.rpcResponse, await call.json(), 'a response')
    for (const name of ['limit', 'remaining', 'reset', 'cost']) assert.ok(call.headers.has(`x-ratelimit-${name}`), name)
    const refused = await fetch(gateway.url, { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"getSlot"}' })
    assert.equal(refused.status, 401)
    check(customer.rpcResponse, await refused.json(), 'a refusal')
  })
})

/** A contract that is listed anywhere has figures, and whatever is shown can be searched for. */
async function checkHistory(http: string, number: number): Promise<void> {
  const body = check(histories.history, await getJson(`${http}/v1/history`), 'history')
  assert.ok(body.blocks.number.includes(number))
  assert.ok(body.blocks.gas_limit.some((limit) => limit !== null && limit > 0))
  const page = check(histories.blockTransactions, await getJson(`${http}/v1/blocks/${number}/transactions`), 'page')
  const [txn = assert.fail('the block has no transactions')] = page.transactions
  assert.ok(txn.execution_ns !== null && txn.execution_ns > 0)
  const listed = async () => topAccesses.parse(await getJson(`${http}/v1/top-accesses`)).account.map(({ key }) => key)
  const contracts = [...(await listed()), ...body.contention.contracts]
  assert.ok(contracts.length > 10)
  for (const address of contracts) {
    const { status } = await fetch(`${http}/v1/contracts/${address}`)
    // The list changes while the test goes through it.
    if (status === 404 && !(await listed()).includes(address)) continue
    check(histories.contractFigures, await getJson(`${http}/v1/contracts/${address}`), address)
  }
  for (const query of [number, page.block_hash, page.block_id, txn.hash, contracts[0]]) {
    const found = check(histories.searchResults, await getJson(`${http}/v1/search?q=${query}`), 'search')
    assert.equal(found.results.length, 1, `${query}`)
  }
}
