import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { startGateway } from '../support/gateway.ts'

const CLIENTS = 16
const ROUNDS = 12
/** Pooled in both sizes, not pooled, and streamed. */
const SIZES = [400, 5000, 16_000, 30_000, 60_000, 65_000, 200_000]

/** A node whose response is as long as the first parameter states and contains the second. */
async function startEchoNode() {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { id, params } = JSON.parse(Buffer.concat(chunks).toString()) as { id: number; params?: [number, string] }
      const [bytes = 10, letter = 'x'] = params ?? []
      const body = JSON.stringify({ jsonrpc: '2.0', result: letter.repeat(bytes), id })
      // In two pieces, so that a response is not always read at once.
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
      response.write(body.slice(0, bytes >> 1))
      response.end(body.slice(bytes >> 1))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

test('parallel calls with bodies of every size each get their own body, compressed and not', async () => {
  await using node = await startEchoNode()
  await using gateway = await startGateway([{ name: 'a', rpc: node.url }])
  const { token } = await gateway.subscribe({ plan: 'professional' })
  let wrong = 0
  const client = async (number: number) => {
    for (let round = 0; round < ROUNDS; round++) {
      const bytes = SIZES[(number + round) % SIZES.length] as number
      const letter = String.fromCharCode(97 + ((number * ROUNDS + round) % 26))
      const response = await fetch(gateway.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-token': token,
          'accept-encoding': number % 3 === 0 ? 'gzip' : 'identity',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: number, method: 'getAccountInfo', params: [bytes, letter] }),
      })
      const expected = JSON.stringify({ jsonrpc: '2.0', result: letter.repeat(bytes), id: number })
      if ((await response.text()) !== expected) wrong += 1
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_nothing, number) => client(number)))
  assert.equal(wrong, 0)
})
