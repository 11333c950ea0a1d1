import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createAdminToken } from '../../access/token.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { Secret } from '../../platform/config/secret-ref.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { openRemoteApi } from './api.ts'

const CUSTOMER = { id: 'cus_1', name: 'a', contact: '', state: 'active', created_at: '2026-01-01T00:00:00.000Z' }

test('a page of a list has at most as many items as were requested; what a server sends beyond it is not kept', async () => {
  let count = 1000
  const targets: string[] = []
  const server = createServer((request, response) => {
    targets.push(request.url ?? '')
    const items = Array.from({ length: count }, () => ({ ...CUSTOMER, subscriptions: 0 }))
    const next_cursor = targets.length % 2 === 1 && count === 1000 ? 'a/b&c' : null
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ items, next_cursor }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    using api = openRemoteApi(
      { url, token: new Secret(createAdminToken(secureRandom).secret), isDryRun: false },
      { clock: createManualClock(), random: createSeededRandom(1) },
    )
    assert.equal((await api.list('customerList')).length, 2000)
    assert.deepEqual(targets, ['/v1/customers?limit=1000', '/v1/customers?limit=1000&cursor=a%2Fb%26c'])
    count = 1001
    await assert.rejects(api.list('customerList'), /not respond as the admin API does: a page has more than 1000 items/)
  } finally {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
})
