import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { deflateRawSync } from 'node:zlib'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'
import { openWsTestClient } from '../support/gateway/ws-client.ts'
import { createRandom, mutate, repeatsOf, seedOf } from '../support/process/property.ts'

const TEXT = 1
const BINARY = 2
const CLOSE = 8
const PING = 9
const MESSAGE_BYTES_MAX = 4096

type FrameOptions = { opcode?: number; isLast?: boolean; rsv?: number; isMasked?: boolean; claimedBytes?: number }

/** A client frame (RFC 6455 section 5.2), with any field invalid on request. */
function frame(payload: Uint8Array | string, options: FrameOptions = {}): Buffer {
  const { opcode = TEXT, isLast = true, rsv = 0, isMasked = true } = options
  const bytes = Buffer.from(payload)
  const length = options.claimedBytes ?? bytes.length
  const first = (isLast ? 0x80 : 0) | (rsv << 4) | opcode
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = first
  head[1] = (isMasked ? 0x80 : 0) | (length < 126 ? length : length < 65_536 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  if (!isMasked) return Buffer.concat([head, bytes])
  const mask = Buffer.from([1, 2, 3, 4])
  return Buffer.concat([head, mask, bytes.map((byte, at) => byte ^ (mask[at % 4] as number))])
}

const call = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"getRateLimits"}`

describe('T11: hostile WebSocket frames', () => {
  let node: FakeNode
  let gateway: ServedGateway
  before(async () => {
    node = await startFakeNode()
    gateway = await startServedGateway([{ name: 'a', rpc: node.rpc, ws: node.ws }])
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  /** A socket after its handshake, and the frames it receives. */
  async function open(extensions = '') {
    const { port, hostname } = new URL(gateway.ws)
    const socket: Socket = connect({ port: Number(port), host: hostname, noDelay: true })
    const seen = { socket, head: '', bytes: Buffer.alloc(0), isClosed: false }
    let hasHead = false
    socket.on('error', () => {})
    socket.on('close', () => (seen.isClosed = true))
    socket.on('data', (chunk: Buffer) => {
      seen.bytes = Buffer.concat([seen.bytes, chunk])
      const split = seen.bytes.indexOf('\r\n\r\n')
      if (hasHead || split === -1) return
      hasHead = true
      seen.head = seen.bytes.subarray(0, split).toString()
      seen.bytes = seen.bytes.subarray(split + 4)
    })
    socket.write(
      `GET / HTTP/1.1\r\nhost: gateway\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n` +
        `sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nx-token: ${gateway.token}\r\n${extensions}\r\n`,
    )
    await until('the handshake is over', () => seen.head !== '')
    assert.match(seen.head, /^HTTP\/1\.1 101 /)
    return seen
  }

  /** The code of the close frame among what came. */
  function closeCode(bytes: Buffer): number | undefined {
    for (let at = 0; at + 2 <= bytes.length; ) {
      const short = (bytes[at + 1] as number) & 0x7f
      const head = short === 126 ? 4 : short === 127 ? 10 : 2
      const length =
        short === 126 ? bytes.readUInt16BE(at + 2) : short === 127 ? Number(bytes.readBigUInt64BE(at + 2)) : short
      if (((bytes[at] as number) & 0x0f) === CLOSE) return length >= 2 ? bytes.readUInt16BE(at + head) : 1005
      at += head + length
    }
    return undefined
  }

  test('T11: never negotiates compression', async () => {
    for (const offer of [
      'permessage-deflate',
      'permessage-deflate; client_max_window_bits, x-webkit-deflate-frame',
      'permessage-deflate; server_no_context_takeover',
    ]) {
      const seen = await open(`sec-websocket-extensions: ${offer}\r\n`)
      assert.doesNotMatch(seen.head, /sec-websocket-extensions/i)
      // Sent all the same: ten megabytes in ten kilobytes.
      seen.socket.write(frame(deflateRawSync(Buffer.alloc(10_000_000)), { rsv: 4 }))
      await until('it is closed', () => seen.isClosed)
      assert.ok([1002, 1009].includes(closeCode(seen.bytes) ?? 0), `${closeCode(seen.bytes)}`)
    }
  })

  const table: readonly [string, () => Buffer, number][] = [
    ['an unmasked frame', () => frame(call(1), { isMasked: false }), 1002],
    ['an unknown opcode', () => frame('x', { opcode: 3 }), 1002],
    ['reserved bits', () => frame('x', { rsv: 1 }), 1002],
    ['a continuation of nothing', () => frame('x', { opcode: 0 }), 1002],
    ['a new message within a message', () => Buffer.concat([frame('{', { isLast: false }), frame('}')]), 1002],
    ['a ping in two parts', () => frame('x', { opcode: PING, isLast: false }), 1002],
    ['a ping of 126 bytes', () => frame('x'.repeat(126), { opcode: PING }), 1002],
    ['text that is not UTF-8', () => frame(Uint8Array.of(0xff, 0xfe)), 1007],
    ['binary that is not UTF-8', () => frame(Uint8Array.of(0xff, 0xfe), { opcode: BINARY }), 1003],
    ['4097 bytes', () => frame('x'.repeat(MESSAGE_BYTES_MAX + 1)), 1009],
    ['a frame that claims 2 GiB', () => frame('x', { claimedBytes: 2 ** 31 }), 1009],
    ['a frame that claims 2^62 bytes', () => frame('x', { claimedBytes: 2 ** 62 }), 1009],
    [
      '4097 bytes in small parts',
      () =>
        Buffer.concat([
          frame('x', { isLast: false }),
          ...Array.from({ length: 41 }, () => frame('x'.repeat(100), { opcode: 0, isLast: false })),
        ]),
      1009,
    ],
    [
      'eleven pings in a second',
      () => Buffer.concat(Array.from({ length: 40 }, () => frame('', { opcode: PING }))),
      1008,
    ],
    ['a close with half a code', () => frame(Uint8Array.of(3), { opcode: CLOSE }), 1002],
    ['a close with a code that is none', () => frame(Uint8Array.of(0, 1), { opcode: CLOSE }), 1002],
  ]
  for (const [name, bytes, code] of table) {
    test(`T11: ${name}: ${code}`, async () => {
      const seen = await open()
      seen.socket.write(bytes())
      await until('it is closed', () => seen.isClosed)
      assert.equal(closeCode(seen.bytes), code)
    })
  }

  test('T11: accepts fragments, pings between them, and a message of 4096 bytes', async () => {
    const seen = await open()
    const text = call(7)
    seen.socket.write(frame(text.slice(0, 5), { isLast: false }))
    seen.socket.write(frame('still here', { opcode: PING }))
    seen.socket.write(frame(text.slice(5), { opcode: 0 }))
    await until('the response arrives', () => seen.bytes.includes('"id":7'))
    assert.ok(seen.bytes.includes('still here'))
    seen.socket.write(frame(call(8).padEnd(MESSAGE_BYTES_MAX)))
    await until('the response arrives', () => seen.bytes.includes('"id":8'))
    seen.socket.destroy()
  })

  test('T11: mutated frames close only their own connection', async (t) => {
    const random = createRandom(seedOf(t))
    const other = await openWsTestClient(gateway.ws, { 'x-token': gateway.token })
    await other.call('slotSubscribe')
    const good = [...table.map(([, bytes]) => bytes()), frame(call(1)), frame('x'.repeat(4000))]
    const rounds = repeatsOf({ short: 150, full: 5000 })
    for (let round = 0; round < rounds; round++) {
      const seen = await open()
      for (let sent = 0; sent < 3; sent++) {
        const chosen = good[random(good.length)] as Buffer
        if (!seen.isClosed) seen.socket.write(mutate(chosen, random))
      }
      seen.socket.end()
      if (round % 25 === 24) assert.equal((await other.call('getRateLimits')).error, undefined)
    }
    assert.equal(other.socket.readyState, other.socket.OPEN)
    const status = JSON.parse((await gateway.sluice('status', '--json')).stdout) as { state: string }
    assert.equal(status.state, 'ok')
    other.socket.terminate()
  })
})
