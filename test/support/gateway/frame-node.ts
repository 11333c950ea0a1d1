import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

export const DATA = 0
export const HEADERS = 1
export const RST_STREAM = 3
const SETTINGS = 4
const PING = 6
export const END_STREAM = 0x1
export const END_HEADERS = 0x4
export const PADDED = 0x8
const ACK = 0x1
const HEAD_BYTES = 9
const PREFACE_BYTES = 24

/** One HTTP/2 frame (RFC 9113 section 4.1). */
export function http2Frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(streamId, 5)
  return Buffer.concat([head, payload])
}

/** Literal fields without indexing (RFC 7541 section 6.2.2), each with less than 127 bytes of name and value. */
export function fields(list: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(list).flatMap(([name, value]) =>
      [Buffer.of(0, name.length), name, Buffer.of(value.length), value].map((part) => Buffer.from(part as string)),
    ),
  )
}

/** Headers of a response of gRPC, or of another one where they say so. */
export const responseFields = (list: Readonly<Record<string, string>> = {}): Buffer =>
  fields({ ':status': '200', 'content-type': 'application/grpc', ...list })

/** A gRPC node that responds to each call with frames that the test makes, valid or not. */
export async function startFrameNode() {
  const node = { respond: (_streamId: number): readonly Buffer[] => [] }
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.write(http2Frame(SETTINGS, 0, 0, Buffer.alloc(0)))
    let unread = Buffer.alloc(0)
    let skip = PREFACE_BYTES
    socket.on('data', (bytes: Buffer) => {
      unread = Buffer.concat([unread, bytes])
      for (;;) {
        if (unread.length < skip + HEAD_BYTES) return
        const frame = unread.subarray(skip)
        const length = HEAD_BYTES + frame.readUIntBE(0, 3)
        if (frame.length < length) return
        skip = 0
        unread = frame.subarray(length)
        const payload = frame.subarray(HEAD_BYTES, length)
        const [type, flags] = [frame[3], frame[4] as number]
        if (type === SETTINGS && (flags & ACK) === 0) socket.write(http2Frame(SETTINGS, ACK, 0, Buffer.alloc(0)))
        if (type === PING && (flags & ACK) === 0) socket.write(http2Frame(PING, ACK, 0, payload))
        if (type === HEADERS) socket.write(Buffer.concat(node.respond(frame.readUInt32BE(5))))
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    /** The frames for each call from now on. */
    onCall(respond: (streamId: number) => readonly Buffer[]): void {
      node.respond = respond
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}
