import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export type WsClients = Disposable & {
  /** Forgets what was counted and begins anew. */
  reset(): void
  counts(): { readonly messages: number; readonly bytes: number; readonly agesMs: readonly number[] }
}

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const SUBSCRIBE = '{"jsonrpc":"2.0","id":1,"method":"logsSubscribe","params":["all"]}'
const TIME = Buffer.from('"t":')
const TIME_BYTES = 16
/** How many are connected at the same time. */
const AT_ONCE = 50

/** Clients that do nothing but count frames; of each piece that arrives the age of the last message is noted. */
export async function openWsClients(port: number, token: string, count: number): Promise<WsClients> {
  const sockets: Socket[] = []
  let messages = 0
  let bytes = 0
  let agesMs: number[] = []

  async function open(): Promise<void> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    sockets.push(socket)
    socket.on('error', (error) => {
      throw error
    })
    socket.write(
      `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${KEY}\r\nSec-WebSocket-Version: 13\r\nx-token: ${token}\r\n\r\n`,
    )
    const [answer] = (await once(socket, 'data')) as [Buffer]
    if (!answer.toString('latin1').startsWith('HTTP/1.1 101')) throw new Error(answer.toString('latin1'))
    socket.write(maskedText(SUBSCRIBE))
    await once(socket, 'data')
    countFrames(socket)
  }

  function countFrames(socket: Socket): void {
    let rest: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let at = 0
      let last = -1
      for (;;) {
        const size = frameBytes(data, at)
        if (size === undefined || at + size > data.length) break
        last = at
        at += size
        messages += 1
      }
      rest = at === data.length ? data.subarray(0, 0) : data.subarray(at)
      if (last !== -1) noteAge(data.subarray(last, at))
    })
  }

  function noteAge(frame: Buffer): void {
    const from = frame.indexOf(TIME)
    if (from === -1) return
    const madeMs = Number(frame.toString('latin1', from + TIME.length, from + TIME.length + TIME_BYTES))
    agesMs.push(performance.timeOrigin + performance.now() - madeMs)
  }

  for (let made = 0; made < count; made += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - made) }, open))
  }
  return {
    reset() {
      messages = 0
      bytes = 0
      agesMs = []
    },
    counts: () => ({ messages, bytes, agesMs }),
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Of a frame that is not masked, as servers send them (RFC 6455 section 5.2). */
function frameBytes(data: Buffer, at: number): number | undefined {
  if (data.length - at < 2) return undefined
  const length = (data[at + 1] as number) & 0x7f
  if (length < 126) return 2 + length
  if (length === 126) return data.length - at < 4 ? undefined : 4 + data.readUInt16BE(at + 2)
  return data.length - at < 10 ? undefined : 10 + Number(data.readBigUInt64BE(at + 2))
}

/** Masked with zeros, which the protocol allows and which changes nothing. */
function maskedText(text: string): Buffer {
  const head = text.length < 126 ? [0x81, 0x80 | text.length] : [0x81, 0xfe, text.length >> 8, text.length & 255]
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), Buffer.from(text)])
}
