import { createServer, type Socket } from 'node:net'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { SubscribeUpdateSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'

/**
 * A node for the gRPC bench: sends account updates of about 1 KB to every Subscribe call, at the given rate or, with 0, as fast as possible. Each
 * message has its own DATA frame, as from real nodes; node:http2 would combine several, so the frames are written directly here (RFC 9113).
 */
const [perSecond = 0] = process.argv.slice(2).map(Number)
const DATA_BYTES = 940
const BEAT_MS = 2
/** Messages per write at the maximum rate. */
const BURST = 64
const PREFACE_BYTES = 24
const HEAD_BYTES = 9
const [DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE] = [0, 1, 4, 6, 8]
const ACK = 1
const END_HEADERS = 4
const WINDOW_SETTING = 4
const WINDOW_DEFAULT = 65_535

const update = frameMessage(
  encodeMessage(SubscribeUpdateSchema, {
    filters: ['a'],
    updateOneof: {
      case: 'account',
      value: { slot: 1000n, account: { pubkey: Buffer.alloc(32, 1), lamports: 1n, data: Buffer.alloc(DATA_BYTES, 7) } },
    },
  }),
)
/** `:status: 200` from the static table, and content-type as a literal that is not indexed (RFC 7541 section 6). */
const TYPE = 'application/grpc'
const RESPONSE = Buffer.concat([Buffer.from([0x88, 0x0f, 0x10, TYPE.length]), Buffer.from(TYPE)])

type Stream = { readonly id: number; window: number; readonly frame: Buffer }
type Peer = {
  readonly socket: Socket
  readonly streams: Map<number, Stream>
  window: number
  initialWindow: number
  turn: number
}

const peers = new Set<Peer>()

const server = createServer({ noDelay: true }, (socket) => {
  const peer: Peer = { socket, streams: new Map(), window: WINDOW_DEFAULT, initialWindow: WINDOW_DEFAULT, turn: 0 }
  peers.add(peer)
  let rest: Buffer = Buffer.alloc(0)
  let hasPreface = false
  socket.write(frameOf(SETTINGS, 0, 0, Buffer.alloc(0)))
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    if (!hasPreface) {
      if (rest.length < PREFACE_BYTES) return
      rest = rest.subarray(PREFACE_BYTES)
      hasPreface = true
    }
    while (rest.length >= HEAD_BYTES) {
      const size = HEAD_BYTES + rest.readUIntBE(0, 3)
      if (rest.length < size) break
      onFrame(peer, rest.subarray(0, size))
      rest = rest.subarray(size)
    }
    if (perSecond === 0) pour(peer)
  })
  socket.on('drain', () => {
    if (perSecond === 0) pour(peer)
  })
  socket.on('error', () => {})
  socket.on('close', () => peers.delete(peer))
})

function onFrame(peer: Peer, frame: Buffer): void {
  const type = frame[3] as number
  const flags = frame[4] as number
  const id = frame.readUInt32BE(5) & 0x7fffffff
  const payload = frame.subarray(HEAD_BYTES)
  if (type === SETTINGS && flags !== ACK) {
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      if (payload.readUInt16BE(at) === WINDOW_SETTING) peer.initialWindow = payload.readUInt32BE(at + 2)
    }
    peer.socket.write(frameOf(SETTINGS, ACK, 0, Buffer.alloc(0)))
  } else if (type === PING && flags !== ACK) peer.socket.write(frameOf(PING, ACK, 0, payload))
  else if (type === WINDOW_UPDATE) {
    const by = payload.readUInt32BE(0)
    const stream = peer.streams.get(id)
    if (id === 0) peer.window += by
    else if (stream !== undefined) stream.window += by
  } else if (type === HEADERS) {
    peer.socket.write(frameOf(HEADERS, END_HEADERS, id, RESPONSE))
    peer.streams.set(id, { id, window: peer.initialWindow, frame: frameOf(DATA, 0, id, update) })
  } else if (type === DATA && payload.length > 0) {
    peer.socket.write(frameOf(WINDOW_UPDATE, 0, 0, uint32(payload.length)))
    peer.socket.write(frameOf(WINDOW_UPDATE, 0, id, uint32(payload.length)))
  }
}

/** Writes as many messages as flow control and socket allow, round-robin over the streams. */
function pour(peer: Peer): void {
  while (!peer.socket.writableNeedDrain) {
    const frames: Buffer[] = []
    for (let made = 0; made < BURST; made++) {
      const frame = next(peer)
      if (frame === undefined) break
      frames.push(frame)
    }
    if (frames.length === 0) return
    peer.socket.write(Buffer.concat(frames))
  }
}

function next(peer: Peer): Buffer | undefined {
  if (peer.window < update.length) return undefined
  const streams = [...peer.streams.values()]
  for (let step = 0; step < streams.length; step++) {
    const stream = streams[(peer.turn + step) % streams.length] as Stream
    if (stream.window < update.length) continue
    peer.turn = (peer.turn + step + 1) % streams.length
    stream.window -= update.length
    peer.window -= update.length
    return stream.frame
  }
  return undefined
}

if (perSecond > 0) {
  const startMs = performance.now()
  let sent = 0
  setInterval(() => {
    const due = Math.floor(((performance.now() - startMs) / 1000) * perSecond)
    const live = [...peers].filter(({ streams }) => streams.size > 0)
    if (live.length === 0) sent = due
    for (; sent < due; sent++) {
      const peer = live[sent % live.length] as Peer
      const frame = next(peer)
      if (frame !== undefined) peer.socket.write(frame)
    }
  }, BEAT_MS)
}

function frameOf(type: number | undefined, flags: number, id: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type as number
  head[4] = flags
  head.writeUInt32BE(id, 5)
  return Buffer.concat([head, payload])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value, 0)
  return bytes
}

server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as { port: number }).port })}\n`)
})
