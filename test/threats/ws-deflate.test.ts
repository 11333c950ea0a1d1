import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { constants, deflateRawSync } from 'node:zlib'
import { until } from '../../src/platform/process/test-wait.ts'
import { startTestExecution, type TestExecution } from '../support/execution/start.ts'

/** Hostile frames on a connection with permessage-deflate, which 8443 accepts with `execution.wsCompression`. */

const TEXT = 1
const CONTINUATION = 0
const CLOSE = 8
const PING = 9
const RSV1 = 4
const MESSAGE_BYTES_MAX = 64 * 1024

type FrameOptions = { opcode?: number; isLast?: boolean; rsv?: number }

function frame(payload: Uint8Array | string, { opcode = TEXT, isLast = true, rsv = 0 }: FrameOptions = {}): Buffer {
  const bytes = Buffer.from(payload)
  const head = Buffer.alloc(bytes.length < 126 ? 2 : bytes.length < 65_536 ? 4 : 10)
  head[0] = (isLast ? 0x80 : 0) | (rsv << 4) | opcode
  head[1] = 0x80 | (bytes.length < 126 ? bytes.length : bytes.length < 65_536 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(bytes.length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(bytes.length), 2)
  const mask = Buffer.from([1, 2, 3, 4])
  return Buffer.concat([head, mask, bytes.map((byte, at) => byte ^ (mask[at % 4] as number))])
}

function deflated(text: string | Buffer): Buffer {
  return deflateRawSync(text, { windowBits: 12, finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
}

const SUBSCRIBE = '{"subscribe":["TPS"]}'

describe('T11: hostile compressed WebSocket frames', () => {
  let service: TestExecution
  before(async () => {
    service = await startTestExecution({ settings: { wsCompression: true } })
  })
  after(() => service[Symbol.asyncDispose]())

  async function open(offer: string | null = 'permessage-deflate') {
    const { port, hostname } = new URL(service.ws)
    const socket: Socket = connect({ port: Number(port), host: hostname, noDelay: true })
    const seen = { socket, head: '', bytes: Buffer.alloc(0), isClosed: false }
    socket.on('error', () => {})
    socket.on('close', () => (seen.isClosed = true))
    socket.on('data', (chunk: Buffer) => {
      seen.bytes = Buffer.concat([seen.bytes, chunk])
      const split = seen.head === '' ? seen.bytes.indexOf('\r\n\r\n') : -1
      if (split === -1) return
      seen.head = seen.bytes.subarray(0, split).toString()
      seen.bytes = seen.bytes.subarray(split + 4)
    })
    socket.write(
      `GET /v1/ws HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n` +
        `sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n${offer === null ? '' : `sec-websocket-extensions: ${offer}\r\n`}\r\n`,
    )
    await until('the handshake is over', () => seen.head !== '')
    assert.match(seen.head, /^HTTP\/1\.1 101 /)
    assert.equal(/sec-websocket-extensions: permessage-deflate/i.test(seen.head), offer !== null)
    return seen
  }

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

  const table: readonly [string, () => Buffer, number][] = [
    ['a bomb of 48 MiB in 50 KiB', () => frame(bomb(), { rsv: RSV1 }), 1009],
    [
      '64 KiB and a byte, inflated',
      () => frame(deflated(Buffer.alloc(MESSAGE_BYTES_MAX + 1, ' ')), { rsv: RSV1 }),
      1009,
    ],
    [
      'a bomb in fragments',
      () => {
        const packed = deflated(Buffer.alloc(10_000_000, ' '))
        return Buffer.concat([
          frame(packed.subarray(0, 100), { rsv: RSV1, isLast: false }),
          frame(packed.subarray(100), { opcode: CONTINUATION }),
        ])
      },
      1009,
    ],
    ['more than 64 KiB of compressed bytes', () => frame(Buffer.alloc(MESSAGE_BYTES_MAX + 1), { rsv: RSV1 }), 1009],
    ['bytes that do not inflate', () => frame(Uint8Array.of(0xff, 0xff, 0xff, 0xff), { rsv: RSV1 }), 1007],
    ['compressed bytes that are not UTF-8', () => frame(deflated(Buffer.of(0xff, 0xfe)), { rsv: RSV1 }), 1007],
    [
      'RSV1 on a continuation',
      () =>
        Buffer.concat([
          frame(deflated(SUBSCRIBE), { rsv: RSV1, isLast: false }),
          frame('', { opcode: CONTINUATION, rsv: RSV1 }),
        ]),
      1002,
    ],
    ['RSV1 on a ping', () => frame('x', { opcode: PING, rsv: RSV1 }), 1002],
    ['RSV1 on a close', () => frame(Uint8Array.of(3, 232), { opcode: CLOSE, rsv: RSV1 }), 1002],
    ['RSV2', () => frame(SUBSCRIBE, { rsv: 2 }), 1002],
  ]
  for (const [name, bytes, code] of table) {
    test(`T11: ${name}: ${code}`, async () => {
      const seen = await open()
      seen.socket.write(bytes())
      await until('it is closed', () => seen.isClosed)
      assert.equal(closeCode(seen.bytes), code)
    })
  }

  test('T11: RSV1 without compression negotiated: 1002', async () => {
    const seen = await open(null)
    seen.socket.write(frame(deflated(SUBSCRIBE), { rsv: RSV1 }))
    await until('it is closed', () => seen.isClosed)
    assert.equal(closeCode(seen.bytes), 1002)
  })

  test('T11: a bomb is not inflated beyond the limit', async () => {
    const packed = bomb()
    const seen = await open()
    const before = process.memoryUsage().rss
    const startedMs = performance.now()
    let most = before
    seen.socket.write(frame(packed, { rsv: RSV1 }))
    await until('it is closed', () => {
      most = Math.max(most, process.memoryUsage().rss)
      return seen.isClosed
    })
    assert.ok(most - before < 24 * 2 ** 20, `${(most - before) / 2 ** 20} MiB more`)
    assert.ok(performance.now() - startedMs < 5000)
  })

  test('T11: accepts compressed and plain messages, in parts, with pings between them, and 64 KiB', async () => {
    const seen = await open()
    const packed = deflated(SUBSCRIBE)
    seen.socket.write(frame(packed.subarray(0, 4), { rsv: RSV1, isLast: false }))
    seen.socket.write(frame('still here', { opcode: PING }))
    seen.socket.write(frame(packed.subarray(4), { opcode: CONTINUATION }))
    await until('the response arrives', () => seen.bytes.includes('"Subscribed":{"events":["TPS"]'))
    assert.ok(seen.bytes.includes('still here'))
    seen.socket.write(frame('{"subscribe":["Lifecycle"]}'))
    await until('the response arrives', () => seen.bytes.includes('"Subscribed":{"events":["Lifecycle"]'))
    const padded = '{"subscribe":["TPS","Lifecycle"]}'.padEnd(MESSAGE_BYTES_MAX)
    seen.socket.write(frame(deflated(padded), { rsv: RSV1 }))
    await until('the response arrives', () => seen.bytes.includes('"Subscribed":{"events":["TPS","Lifecycle"]'))
    seen.socket.destroy()
  })
})

/** 48 MiB in less than 64 KiB, near the highest ratio of deflate. */
function bomb(): Buffer {
  const packed = deflated(Buffer.alloc(48 * 2 ** 20))
  assert.ok(packed.length < MESSAGE_BYTES_MAX, `${packed.length}`)
  return packed
}
