import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { Connection } from '@solana/web3.js'
import { WebSocket } from 'ws'
import type { Localnet } from '../../src/localnet/service.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { endSocket } from '../support/gateway/web3js.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

/** web3.js 1.x cannot set headers on its WebSocket: which addresses it connects to, and what it gets there. */
describe('web3.js over the gateway', () => {
  let node: Localnet
  let gateway: Gateway
  let token: string

  before(async () => {
    node = await startQuickLocalnet()
    gateway = await startGateway([
      { name: 'one', rpc: `http://127.0.0.1:${node.rpc.port}`, ws: `ws://127.0.0.1:${node.ws.port}` },
    ])
    token = (await gateway.subscribe({})).token
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  async function refusedFix(query: string): Promise<string> {
    const socket = new WebSocket(`${gateway.ws}/${query}`)
    socket.on('error', () => {})
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
    assert.equal(response.statusCode, 401)
    let body = ''
    for await (const chunk of response) body += String(chunk)
    return (JSON.parse(body) as { error: { data: { fix: string } } }).error.data.fix
  }

  it('derives a WebSocket address with the key of the query, whose refusal names the ticket', async () => {
    const connection = new Connection(`${gateway.url}/?api-key=${token}`)
    assert.ok((await connection.getBlockHeight()) >= 0)
    const { _rpcWsEndpoint: derived } = connection as unknown as { _rpcWsEndpoint: string }
    assert.equal(new URL(derived).search, `?api-key=${token}`)
    assert.match(await refusedFix(new URL(derived).search), /POST \/v1\/ws-ticket .*wsEndpoint/)
  })

  it('gets notifications with a ticket as wsEndpoint', async () => {
    const headers = { 'x-token': token }
    const ticket = await fetch(`${gateway.url}/v1/ws-ticket`, { method: 'POST', headers })
    const { url } = (await ticket.json()) as { url: string }
    const connection = new Connection(gateway.url, { httpHeaders: headers, wsEndpoint: url })
    const { promise, resolve } = Promise.withResolvers<number>()
    connection.onSlotChange(({ slot }) => resolve(slot))
    assert.ok((await promise) >= 0)
    endSocket(connection)
  })

  it('gets a refusal that states the expiry where it reconnects with an old ticket', async () => {
    const caller = gateway.access.authenticate({ token }, 'bundle', Date.now())
    assert(caller.ok)
    const { ticket } = gateway.access.issueTicket(caller, Date.now() - 60_001)
    assert.match(await refusedFix(`?ticket=${ticket}`), /has expired; it is valid for 60 s/)
    const wsEndpoint = `${gateway.ws}/?ticket=${ticket}`
    const connection = new Connection(gateway.url, { httpHeaders: { 'x-token': token }, wsEndpoint })
    type Inner = { _rpcWebSocket: { on(event: 'error', listener: (error: Error) => void): void; connect(): void } }
    const { _rpcWebSocket: socket } = connection as unknown as Inner
    const { promise, resolve } = Promise.withResolvers<Error>()
    socket.on('error', resolve)
    socket.connect()
    assert.match((await promise).message, /401/)
    endSocket(connection)
  })
})
