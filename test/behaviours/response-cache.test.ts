import assert from 'node:assert/strict'
import { it } from 'node:test'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { startGateway } from '../support/gateway/start.ts'

const CACHE = { bytesMax: 1024 * 1024, entriesMax: 100, responseBytesMax: 512 * 1024 }
const BLOCK = '{"blockhash":"x","rewards":[18446744073709551615]}'

it('serves immutable responses from memory, charged like any call; without the option every call is forwarded', async () => {
  await using node = await startFakeNode()
  // Large enough to be streamed.
  const large = `{"blockhash":"${'x'.repeat(200_000)}"}`
  node.respond = (method, params) =>
    method === 'getBlock' ? { result: JSON.stringify(params).startsWith('[6') ? large : BLOCK } : undefined
  for (const cache of [undefined, CACHE]) {
    await using gateway = await startGateway([{ name: 'fake', rpc: node.rpc, ws: node.ws }], BUILT_IN_PLANS, {
      bundle: { cache },
    })
    const { token } = await gateway.subscribe({})
    const ask = async (params: string, id: string) => {
      const response = await fetch(gateway.url, {
        method: 'POST',
        headers: { 'x-token': token, 'content-type': 'application/json' },
        body: `{"jsonrpc":"2.0","id":${id},"method":"getBlock","params":${params}}`,
      })
      return { text: await response.text(), cost: response.headers.get('x-ratelimit-cost') }
    }
    node.calls.length = 0
    for (const [slot, result] of [
      ['5', BLOCK],
      ['6', large],
    ]) {
      for (const id of ['1', '"two"', '18446744073709551615']) {
        const { text, cost } = await ask(`[${slot},{"commitment":"finalized"}]`, id)
        assert.match(text, /^\{"jsonrpc":"2\.0","result":/)
        assert.ok(text.includes(`"result":${result},`))
        assert.equal(cost, '5')
        assert.ok(text.trimEnd().endsWith(`"id":${id}}`), id)
      }
    }
    await ask('[5,{"commitment":"confirmed"}]', '1')
    await ask('[5,{"commitment":"confirmed"}]', '1')
    assert.equal(node.calls.length, cache === undefined ? 8 : 4)
    const caller = gateway.access.authenticate({ token }, 'bundle', Date.now())
    assert.ok(caller.ok)
    assert.equal(gateway.access.quota(caller).month.used, 8 * 5)
    const { registry } = gateway
    assert.equal(registry.value('sluice_bundle_cache_lookups_total', { result: 'hit' }), cache === undefined ? 0 : 4)
    assert.equal(registry.value('sluice_bundle_cache_entries'), cache === undefined ? 0 : 2)
    assert.equal(registry.value('sluice_bundle_requests_total', { interface: 'rpc', method: 'getBlock' }), 8)
  }
})
