import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { findInPath } from '../../scripts/needs.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { startFrontProxy } from '../support/gateway/front-proxies.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { smugglingCases } from './smuggling-cases.ts'

const run = promisify(execFile)

/** T5: no request can be hidden inside another one, with or without a proxy in front. */
describe('T5: request smuggling', () => {
  let node: FakeNode
  let gateway: Gateway
  let port: number
  let token: string

  before(async () => {
    node = await startFakeNode()
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc }])
    port = Number(new URL(gateway.url).port)
    token = (await gateway.subscribe({})).token
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  const isStolen = () => node.calls.some(({ body }) => body.includes('stolen'))

  it('responds to every case of the table as listed', async () => {
    const cases = smugglingCases(token)
    assert(cases.length >= 33)
    for (const { name, bytes, status, forwarded } of cases) {
      const before = node.calls.length
      const response = await talk(port, bytes)
      assert.equal(Number(/^HTTP\/1\.1 (\d+)/.exec(response)?.[1]), status, `${name}: ${response}`)
      assert.equal(node.calls.length - before, forwarded, name)
    }
    assert(!isStolen())
  })

  it('sends the node only its own headers', async () => {
    await talk(
      port,
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nx-token: ${token}\r\nConnection: x-hop, close\r\nx-hop: 1\r\nx-forwarded-for: 1.2.3.4\r\nReferer: r\r\nContent-Length: 46\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"getBalance"}`,
    )
    assert.deepEqual(Object.keys(node.calls.at(-1)?.headers ?? {}), ['host', 'content-type', 'content-length'])
  })

  it('is read the same by varnishtest', { skip: need('varnishtest') }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-vtc-'))
    try {
      const clients = smugglingCases(token).map(
        ({ name, bytes, status }, at) => `
# ${name}
client c${at} -connect 127.0.0.1:${port} {
  sendhex "${Buffer.from(bytes, 'latin1').toString('hex')}"
  rxresp
  expect resp.status == ${status}
} -run`,
      )
      const file = join(folder, 'smuggling.vtc')
      await writeFile(file, `varnishtest "where a request ends"\n${clients.join('\n')}\n`)
      await run('varnishtest', ['-t', '60', file])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
    assert(!isStolen())
  })

  for (const kind of ['nginx', 'haproxy'] as const) {
    it(`stays in step with ${kind} in front`, { skip: need(kind) }, async () => {
      await using front = await startFrontProxy(kind, port)
      let victims = 0
      for (const { name, bytes } of smugglingCases(token)) {
        await talk(front.port, bytes)
        // Another client, on the connection that the proxy shares among its clients.
        const id = `victim-${++victims}`
        const body = `{"jsonrpc":"2.0","id":"${id}","method":"getBalance"}`
        const response = await fetch(`http://127.0.0.1:${front.port}/`, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json', 'x-token': token },
        })
        assert.equal(response.status, 200, name)
        assert.equal(((await response.json()) as { id: string }).id, id, name)
      }
      assert(!isStolen())
    })
  }
})

/** Sends the bytes and returns everything received until the peer closes or stops sending. */
async function talk(port: number, bytes: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let text = ''
  let isOver = false
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  socket.on('end', () => {
    isOver = true
  })
  socket.on('error', () => {
    isOver = true
  })
  socket.write(Buffer.from(bytes, 'latin1'))
  socket.end()
  await until('the other side has closed', () => isOver, 20_000)
  socket.destroy()
  return text
}

function need(program: string): string | false {
  return findInPath(program) === undefined ? `${program} is missing` : false
}
