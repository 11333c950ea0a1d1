import { type ClientHttp2Session, connect } from 'node:http2'
import { setTimeout as pause } from 'node:timers/promises'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { SubscribeRequestSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'

/**
 * The clients of the gRPC bench as a process. Arguments: port, token, number of connections with one stream each, duration, time before it. They
 * count message bytes; the first message gives the size. Prints `"begin"` when the measurement starts, and the counts when it ends.
 */
const [port = '0', token = '', count = '0', measureMs = '0', warmMs = '1000'] = process.argv.slice(2)
const ACCOUNT = '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA'
const WINDOW_BYTES = 16 * 1024 * 1024
const PREFIX_BYTES = 5
const request = frameMessage(encodeMessage(SubscribeRequestSchema, { accounts: { a: { account: [ACCOUNT] } } }))

let bytes = 0
let messageBytes = 0
const sessions: ClientHttp2Session[] = []
for (let made = 0; made < Number(count); made++) {
  const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: WINDOW_BYTES } })
  session.on('connect', () => session.setLocalWindowSize(WINDOW_BYTES))
  sessions.push(session)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/geyser.Geyser/Subscribe',
    'content-type': 'application/grpc',
    te: 'trailers',
    'x-token': token,
  })
  stream.on('response', (headers) => {
    if (headers['grpc-status'] !== undefined) throw new Error(`refused: ${String(headers['grpc-message'])}`)
  })
  stream.on('data', (chunk: Buffer) => {
    if (messageBytes === 0) messageBytes = PREFIX_BYTES + chunk.readUInt32BE(1)
    bytes += chunk.length
  })
  stream.write(request)
}
await pause(Number(warmMs))
if (bytes === 0) throw new Error('no message was received')
bytes = 0
process.stdout.write('"begin"\n')
const startMs = performance.now()
await pause(Number(measureMs))
const seconds = (performance.now() - startMs) / 1000
process.stdout.write(`${JSON.stringify({ messages: Math.round(bytes / messageBytes), seconds })}\n`)
for (const session of sessions) session.destroy()
