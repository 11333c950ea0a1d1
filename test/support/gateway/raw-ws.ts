import { connect, type Socket } from 'node:net'
import { until } from '../../../src/platform/process/test-wait.ts'

export const OPCODE = { text: 1, binary: 2, close: 8, ping: 9 } as const

export type RawWs = {
  readonly socket: Socket
  /** The handshake response, with its body where it is not an upgrade. */
  readonly head: string
  readonly frames: { readonly opcode: number; readonly payload: Buffer }[]
  readonly isClosed: boolean
}

/** A raw WebSocket handshake and the frames after it. `headers` replace the defaults; undefined omits one. */
export async function openRawWs(
  url: string,
  headers: Readonly<Record<string, string | undefined>> = {},
  version = '1.1',
  method = 'GET',
): Promise<RawWs> {
  const { hostname, port, pathname, search } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  const seen = { socket, head: '', frames: [] as RawWs['frames'], isClosed: false }
  let bytes: Buffer = Buffer.alloc(0)
  let isUpgraded = false
  socket.on('error', () => {})
  socket.on('close', () => {
    if (!isUpgraded) seen.head = bytes.toString()
    seen.isClosed = true
  })
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    const end = isUpgraded ? -1 : bytes.indexOf('\r\n\r\n')
    if (end !== -1 && bytes.includes(' 101 ')) {
      isUpgraded = true
      seen.head = bytes.subarray(0, end).toString()
      bytes = bytes.subarray(end + 4)
    }
    if (isUpgraded) bytes = takeFrames(bytes, seen.frames)
  })
  const fields = {
    host: 'gateway',
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  }
  const lines = Object.entries(fields).filter(([, value]) => value !== undefined)
  socket.write(
    `${method} ${pathname}${search} HTTP/${version}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  )
  await until('the handshake response is complete', () => seen.head !== '')
  return seen
}

/** Reads complete unmasked frames into the list; returns the rest. */
function takeFrames(bytes: Buffer, frames: RawWs['frames']): Buffer {
  let rest = bytes
  while (rest.length >= 2) {
    const short = (rest[1] as number) & 0x7f
    const from = short === 126 ? 4 : short === 127 ? 10 : 2
    if (rest.length < from) break
    const length = short === 126 ? rest.readUInt16BE(2) : short === 127 ? Number(rest.readBigUInt64BE(2)) : short
    if (rest.length < from + length) break
    frames.push({ opcode: (rest[0] as number) & 0x0f, payload: rest.subarray(from, from + length) })
    rest = rest.subarray(from + length)
  }
  return rest
}

/** A masked client frame, up to 65,535 bytes (RFC 6455 section 5.2). */
export function rawFrame(payload: Uint8Array | string, opcode: number = OPCODE.text): Buffer {
  const bytes = Buffer.from(payload)
  const head = Buffer.alloc(bytes.length < 126 ? 2 : 4)
  head[0] = 0x80 | opcode
  head[1] = 0x80 | (bytes.length < 126 ? bytes.length : 126)
  if (head.length === 4) head.writeUInt16BE(bytes.length, 2)
  const mask = Buffer.from([1, 2, 3, 4])
  return Buffer.concat([head, mask, bytes.map((byte, at) => byte ^ (mask[at % 4] as number))])
}
