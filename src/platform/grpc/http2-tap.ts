import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type AcquiredBuffer, BufferPool } from '../net/buffer-pool.ts'

/**
 * Stands between a socket and the HTTP/2 library of a client and takes the payload of DATA frames out on the way (RFC 9113), many messages at
 * once, where the library would call back for every frame. All other frames go to the library and come from it as they are, so that headers,
 * settings, resets and their faults stay its business. What was taken is given back to the server as window by this side.
 */
export type Http2Tap = {
  /** What the library gets in place of the socket. */
  readonly connection: Duplex
  /** DATA of this stream comes out here from now on. */
  open(streamId: number): TappedStream
}

/** The bytes are the listener's to keep, or to give back when nobody looks at them any more. */
export type DataListener = (bytes: Buffer, giveBack: () => void) => void

export type TappedStream = {
  /** Bytes that came and were not delivered yet. */
  readonly waitingBytes: number
  onData(listener: DataListener): void
  /** The headers of the answer were told: data may follow. */
  start(): void
  pause(): void
  resume(): void
  /** Called once, when nothing waits any more; at once when nothing does. */
  whenEmpty(listener: () => void): void
  close(): void
}

export type Http2TapOptions = {
  /** As the library tells the server in its settings. */
  readonly streamWindowBytes: number
  readonly sessionWindowBytes: number
}

const HEAD_BYTES = 9
const DATA = 0
const END_STREAM = 0x1
const PADDED = 0x8
/** Larger frames are not allowed unless this side says so, which it does not; the library then says what is wrong. */
const FRAME_BYTES_MAX = 16_384
/** Window is given back in parts of this share, so that it does not cost a frame for each message. */
const UPDATE_SHARE = 1 / 4

/** Read into again and again; large, so that a busy connection is read in few turns. */
const READ_BYTES = 256 * 1024
/** Of buffers that came back, so many bytes are kept while a stream is open: as much as four streams with their windows full have on the way. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024

/** How a socket is opened that hands over what it reads in one buffer of the caller's. */
export type OpenSocket = (onread: { buffer: Buffer; callback: (bytes: number) => boolean }) => Socket

export function createHttp2Tap(open: OpenSocket, options: Http2TapOptions): Http2Tap {
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
  const socket = open({
    buffer,
    callback(bytes) {
      reader(buffer.subarray(0, bytes))
      return true
    },
  })
  const streams = new Map<number, Tapped>()
  const pool = new BufferPool({ keptBytesMax: KEPT_BYTES_MAX })
  const sessionUpdateBytes = options.sessionWindowBytes * UPDATE_SHARE
  let sessionTaken = 0
  const connection = wrapSocket(socket)

  function giveBack(streamId: number, bytes: number): void {
    if (bytes === 0 || !socket.writable) return
    const frame = Buffer.alloc(HEAD_BYTES + 4)
    frame.writeUIntBE(4, 0, 3)
    frame[3] = 8
    frame.writeUInt32BE(streamId, 5)
    frame.writeUInt32BE(bytes, HEAD_BYTES)
    // Between two writes of the library, each of which is a number of whole frames.
    socket.write(frame)
  }

  class Tapped implements TappedStream {
    readonly #id: number
    #listener: DataListener | undefined
    #waiting: Filled[] = []
    #waitingBytes = 0
    #isStarted = false
    #isPaused = false
    #isClosed = false
    #taken = 0
    #onEmpty: (() => void) | undefined

    constructor(id: number) {
      this.#id = id
    }

    get waitingBytes(): number {
      return this.#waitingBytes
    }

    arrived(piece: Buffer, positions: readonly number[], bytes: number): void {
      if (this.#isClosed) return
      const beforeBytes = this.#waitingBytes
      for (let position = 0; position < positions.length; position += 2) {
        let from = positions[position] as number
        const to = positions[position + 1] as number
        while (from < to) from += this.#fill(piece.subarray(from, to), bytes - (this.#waitingBytes - beforeBytes))
      }
      if (this.#listener !== undefined && this.#isStarted && !this.#isPaused) this.#drain()
      // More than the window it was given: such a server could fill the memory.
      if (this.#waitingBytes > options.streamWindowBytes) connection.destroy(new Error('flow control violated'))
    }

    /** Behind what waits already, into what room there is. */
    #fill(bytes: Buffer, ahead: number): number {
      let last = this.#waiting.at(-1)
      if (last === undefined || last.used === last.acquired.bytes.length) {
        last = { acquired: pool.lend(ahead), used: 0 }
        this.#waiting.push(last)
      }
      const filled = bytes.copy(last.acquired.bytes, last.used)
      last.used += filled
      this.#waitingBytes += filled
      return filled
    }

    /** Padding takes window too. */
    skipped(bytes: number): void {
      this.#taken += bytes
    }

    #deliver(listener: DataListener, { acquired, used }: Filled): void {
      this.#taken += used
      if (this.#taken >= options.streamWindowBytes * UPDATE_SHARE) {
        giveBack(this.#id, this.#taken)
        this.#taken = 0
      }
      listener(acquired.bytes.subarray(0, used), () => acquired.giveBack())
    }

    #drain(): void {
      const listener = this.#listener
      if (listener === undefined || !this.#isStarted) return
      while (this.#waiting.length > 0 && !this.#isPaused && !this.#isClosed) {
        const filled = this.#waiting.shift() as Filled
        this.#waitingBytes -= filled.used
        this.#deliver(listener, filled)
      }
      if (this.#waitingBytes === 0) this.#reportEmpty()
    }

    #reportEmpty(): void {
      const reported = this.#onEmpty
      this.#onEmpty = undefined
      reported?.()
    }

    onData(listener: DataListener): void {
      this.#listener = listener
      this.#drain()
    }

    start(): void {
      this.#isStarted = true
      this.#drain()
    }

    pause(): void {
      this.#isPaused = true
    }

    resume(): void {
      this.#isPaused = false
      this.#drain()
    }

    whenEmpty(listener: () => void): void {
      this.#onEmpty = listener
      if (this.#waitingBytes === 0) this.#reportEmpty()
    }

    close(): void {
      this.#isClosed = true
      for (const { acquired } of this.#waiting) acquired.giveBack()
      this.#waiting = []
      this.#waitingBytes = 0
      streams.delete(this.#id)
      if (streams.size === 0) pool.clear()
    }
  }

  const reader = createFrameReader({
    tapOf: (streamId) => streams.get(streamId),
    pass: (bytes) => void connection.push(bytes),
    took(bytes) {
      sessionTaken += bytes
      if (sessionTaken < sessionUpdateBytes) return
      giveBack(0, sessionTaken)
      sessionTaken = 0
    },
  })

  return {
    connection,
    open(streamId) {
      const tapped = new Tapped(streamId)
      streams.set(streamId, tapped)
      return tapped
    },
  }
}

/** The first bytes of a buffer. */
type Filled = { readonly acquired: AcquiredBuffer; used: number }

type Target = {
  /** Data at these places of the piece, from and to in turn; so many bytes in all. The piece is read over afterwards. */
  arrived(piece: Buffer, positions: readonly number[], bytes: number): void
  /** Bytes of padding. */
  skipped(bytes: number): void
}

type ReaderDeps = {
  tapOf(streamId: number): Target | undefined
  /** Bytes for the library, in the order they came. */
  pass(bytes: Buffer): void
  /** So many bytes of DATA will never be seen by the library. */
  took(bytes: number): void
}

/** Where the payloads of one stream stand in the piece being read: from and to, in turn. */
type Gathered = { readonly target: Target; readonly positions: number[]; bytes: number }

/**
 * Walks the frames of a connection, in whatever pieces they arrive. The payloads of one stream in a piece are handed over together, so that a
 * stream costs by the read and not by the message.
 */
function createFrameReader({ tapOf, pass, took }: ReaderDeps): (piece: Buffer) => void {
  /** A head that did not come whole. */
  let head: Buffer = NOTHING
  /** Of the frame being read. */
  let left = 0
  let target: Target | undefined
  let endsStream = 0
  /** A padded frame is collected whole, since the length of its padding stands in front. */
  let padded: Buffer[] | undefined
  const gathered: Gathered[] = []

  function gather(from: number, to: number): void {
    let own = gathered.find((one) => one.target === target)
    if (own === undefined) {
      own = { target: target as Target, positions: [], bytes: 0 }
      gathered.push(own)
    }
    own.positions.push(from, to)
    own.bytes += to - from
  }

  function handOver(piece: Buffer): void {
    for (const { target: to, positions, bytes } of gathered.splice(0)) to.arrived(piece, positions, bytes)
  }

  /** The last byte of a frame that was taken out. */
  function endFrame(piece: Buffer): void {
    if (padded !== undefined && target !== undefined) {
      const whole = Buffer.concat(padded)
      padded = undefined
      // Too much padding is a fault of the server; nothing of the frame is then data.
      const data = whole.subarray(1, Math.max(1, whole.length - (whole[0] ?? 0)))
      target.skipped(whole.length - data.length)
      handOver(piece)
      target.arrived(data, [0, data.length], data.length)
    }
    if (endsStream === 0) return
    handOver(piece)
    const last = Buffer.alloc(HEAD_BYTES)
    last[4] = END_STREAM
    last.writeUInt32BE(endsStream, 5)
    pass(last)
  }

  return (given) => {
    const piece = head.length === 0 ? given : Buffer.concat([head, given])
    head = NOTHING
    let at = 0
    let passFrom = left > 0 && target === undefined ? 0 : -1
    // The piece is read over by the next one, so what the library gets is a copy.
    const endPass = (to: number): void => {
      if (passFrom !== -1 && to > passFrom) pass(Buffer.from(piece.subarray(passFrom, to)))
      passFrom = -1
    }
    while (at < piece.length) {
      if (left > 0) {
        const to = Math.min(piece.length, at + left)
        left -= to - at
        if (target !== undefined) {
          if (padded === undefined) gather(at, to)
          else padded.push(Buffer.from(piece.subarray(at, to)))
          if (left === 0) endFrame(piece)
        }
        at = to
        continue
      }
      if (piece.length - at < HEAD_BYTES) break
      left = ((piece[at] as number) << 16) | ((piece[at + 1] as number) << 8) | (piece[at + 2] as number)
      const streamId = piece.readUInt32BE(at + 5) & 0x7fffffff
      target = piece[at + 3] === DATA && left <= FRAME_BYTES_MAX ? tapOf(streamId) : undefined
      if (target === undefined) {
        if (passFrom === -1) passFrom = at
      } else {
        endPass(at)
        const flags = piece[at + 4] as number
        took(left)
        endsStream = (flags & END_STREAM) === 0 ? 0 : streamId
        padded = (flags & PADDED) === 0 ? undefined : []
        if (left === 0) endFrame(piece)
      }
      at += HEAD_BYTES
    }
    endPass(at)
    handOver(piece)
    if (at < piece.length) head = Buffer.from(piece.subarray(at))
  }
}

const NOTHING = Buffer.alloc(0)

/** The socket as the library sees it: what it writes goes out as it is, what it reads is pushed by the tap. */
function wrapSocket(socket: Socket): Duplex {
  const connection = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      socket.write(chunk, done)
    },
    // Whole frames of one write of the library stay together.
    writev(chunks, done) {
      socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)), done)
    },
    final(done) {
      socket.end(done)
    },
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  socket.on('end', () => void connection.push(null))
  socket.on('error', (error) => connection.destroy(error))
  socket.on('close', () => connection.destroy())
  return connection
}
