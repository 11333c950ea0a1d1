import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { startGateway } from '../support/gateway.ts'

/** Ids whose bytes a node that reads and writes JSON anew gives back otherwise, or not at all. */
const IDS = [
  '12345678901234567890',
  '9007199254740993',
  '1.0',
  '1e2',
  '-0',
  '0',
  '7',
  'null',
  '"\\u0041"',
  '"a\\/b"',
  '"a/b<&>"',
  '"é€😀"',
  '""',
  '"3f2a-77"',
]
const LARGE = 'x'.repeat(200_000)

describe('the id of a call comes back byte for byte', () => {
  /** What a body is answered with, at a gateway over a node that writes ids as `JSON.stringify` does. */
  async function withGateway(use: (ask: (body: string) => Promise<string>) => Promise<void>, plan = 'wide') {
    await using node = await startFakeNode()
    node.respond = (method) =>
      method === 'getProgramAccounts'
        ? { result: `"${LARGE}"` }
        : method === 'getBlock'
          ? { error: '{"code":-32009,"message":"no such block"}' }
          : { result: '"ok"' }
    const wide = { ...BUILT_IN_PLANS.professional, unitsPerSecond: null, methods: {} }
    const none = { ...BUILT_IN_PLANS.starter, unitsPerSecond: 1, sendsPerSecond: 1, batchItems: 10 }
    await using gateway = await startGateway([{ name: 'a', rpc: node.rpc }], { wide, none })
    const { token } = await gateway.subscribe({ plan })
    await use(async (body) => {
      const headers = { 'content-type': 'application/json', 'x-token': token }
      return (await fetch(gateway.url, { method: 'POST', headers, body })).text()
    })
  }

  const call = (method: string, id: string) => `{"jsonrpc":"2.0","id":${id},"method":"${method}"}`
  const ends = (text: string, id: string) => assert.equal(text.trimEnd().slice(-id.length - 6), `"id":${id}}`, id)

  it('in results, errors of the node and large results', () =>
    withGateway(async (ask) => {
      for (const id of IDS) {
        assert.equal((await ask(call('getHealth', id))).trimEnd(), `{"jsonrpc":"2.0","result":"ok","id":${id}}`)
        ends(await ask(call('getBlock', id)), id)
        const large = await ask(call('getProgramAccounts', id))
        assert.equal(large.trimEnd(), `{"jsonrpc":"2.0","result":"${LARGE}","id":${id}}`)
      }
    }))

  it('in batches, small and large', () =>
    withGateway(async (ask) => {
      for (const [method, result] of [
        ['getHealth', 'ok'],
        ['getProgramAccounts', LARGE],
      ] as const) {
        const text = await ask(`[${IDS.map((id) => call(method, id)).join(',')}]`)
        assert.equal(text, `[${IDS.map((id) => `{"jsonrpc":"2.0","result":"${result}","id":${id}}`).join(',')}]`)
      }
    }))

  it('in refusals of a malformed call, alone and in a batch', () =>
    withGateway(async (ask) => {
      for (const id of IDS) {
        const bad = `{"jsonrpc":"1.0","id":${id},"method":"getHealth"}`
        const refusal = `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":${id}}`
        assert.equal(await ask(bad), refusal)
        assert.equal(await ask(`[${bad}]`), `[${refusal}]`)
      }
    }))

  it('in refusals by a limit, alone and in a batch', () =>
    withGateway(async (ask) => {
      await ask(call('getHealth', '1'))
      await ask(call('getHealth', '1'))
      for (const id of IDS) {
        const text = await ask(call('getProgramAccounts', id))
        assert.match(text, /"code":-32429/)
        ends(text, id)
        const batch = await ask(`[${call('getProgramAccounts', id)}]`)
        assert.match(batch, /"code":-32429/)
        ends(batch.replace(/\]$/, ''), id)
      }
    }, 'none'))

  it('in refusals for want of a node', async () => {
    await using gateway = await startGateway([{ name: 'gone', rpc: 'http://127.0.0.1:1' }])
    const { token } = await gateway.subscribe({})
    const headers = { 'content-type': 'application/json', 'x-token': token }
    for (const id of IDS.slice(0, 9)) {
      const body = call('getHealth', id)
      for (const [sent, end] of [
        [body, ''],
        [`[${body}]`, ']'],
      ] as const) {
        const text = await (await fetch(gateway.url, { method: 'POST', headers, body: sent })).text()
        assert.match(text, /"code":-32503/)
        assert(text.endsWith(`,"id":${id}}${end}`), text)
      }
    }
  })
})
