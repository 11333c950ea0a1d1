import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { startServedGateway } from '../support/gateway/served.ts'

const RESPONSE_BYTES = 50 * 1024 * 1024
const AT_ONCE = 5
/** Held completely, the responses of the stopped clients would be twice this. */
const GROWTH_BYTES_MAX = 2 * RESPONSE_BYTES

test('streams responses of 50 MB in constant memory, also to clients that stop reading', async (t) => {
  await using node = await startFakeNode()
  const body = `{"jsonrpc":"2.0","result":"${'x'.repeat(RESPONSE_BYTES)}","id":1}`
  node.respond = (method) => (method === 'getProgramAccounts' ? { status: 200, body } : undefined)
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }])
  const status = () => readFileSync(`/proc/${gateway.running.child.pid}/status`, 'utf8')
  const bytesOf = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status())?.[1]) * 1024
  const { port, hostname } = new URL(gateway.url)
  const question = '{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts"}'

  /** Reads the complete response, or stops after the first bytes until resumed. */
  function ask(stops: boolean) {
    const socket = connect(Number(port), hostname)
    const seen = { socket, bytes: 0, end: '' }
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      if (stops && seen.bytes === 0) socket.pause()
      seen.bytes += chunk.length
      // The end may arrive in several chunks.
      seen.end = (seen.end + chunk.subarray(-40).toString('latin1')).slice(-40)
    })
    socket.write(
      `POST / HTTP/1.1\r\nhost: gateway\r\nx-token: ${gateway.token}\r\ncontent-type: application/json\r\ncontent-length: ${question.length}\r\n\r\n${question}`,
    )
    return seen
  }
  const isComplete = ({ bytes, end }: { bytes: number; end: string }) =>
    bytes > RESPONSE_BYTES && end.includes('"id":1}')

  const first = ask(false)
  await until('the first is here', () => isComplete(first), 60_000)
  first.socket.destroy()
  const before = bytesOf('VmRSS')
  const stuck = Array.from({ length: AT_ONCE - 1 }, () => ask(true))
  const reads = ask(false)
  await until('the reading client has the complete response', () => isComplete(reads), 60_000)
  await until('the others have begun', () => stuck.every(({ bytes }) => bytes > 0))
  const growth = bytesOf('VmRSS') - before
  t.diagnostic(
    `RSS ${Math.round(before / 2 ** 20)} MiB before, ${(growth / 2 ** 20).toFixed(1)} MiB more with ${AT_ONCE} responses of 50 MB`,
  )
  assert.ok(growth <= GROWTH_BYTES_MAX, `${growth} bytes`)
  for (const { socket } of stuck) socket.resume()
  await until('the others have the complete response too', () => stuck.every(isComplete), 60_000)
  assert.ok(bytesOf('VmRSS') - before <= GROWTH_BYTES_MAX)
  for (const { socket } of [...stuck, reads]) socket.destroy()
})
