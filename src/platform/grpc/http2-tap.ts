import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type AcquiredBuffer, BufferPool } from '../net/buffer-pool.ts'

/**
 * Sits between a socket and node:http2 on the client side and takes out the payload of DATA frames (RFC 9113), many frames at a time, where the library
 * would call back for every frame. All other frames pass unchanged in both directions: the library handles headers, settings, resets and errors. The tap
 * sends the WINDOW_UPDATE frames for the bytes it takes out.
 */
export type Http2Tap = {
  /** What the library gets instead of the socket. */
  readonly connection: Duplex
  /** Takes out the DATA of this stream from now on. */
  open(streamId: number): TappedStream
}

/** The listener may keep the bytes, or call `release` when they are not used any more. */
export type DataListener = (bytes: Buffer, release: () => void) => void

export type TappedStream = {
  /** Bytes received and not delivered yet. */
  readonly waitingBytes: number
  onData(listener: DataListener): void
  /** The response headers were delivered: data may follow. */
  start(): void
  pause(): void
  resume(): void
  /** Called once when no data waits, also because the stream was closed; at once when none does. */
  whenEmpty(listener: () => void): void
  close(): void
}

export type Http2TapOptions = {
  /** As announced in the library's settings. */
  readonly streamWindowBytes: number
  readonly sessionWindowBytes: number
}

const HEAD_BYTES = 9
const DATA = 0
const WINDOW_UPDATE = 8
const END_STREAM = 0x1
const PADDED = 0x8
/** SETTINGS_MAX_FRAME_SIZE of this side. A larger frame is passed to the library, which reports the error. */
const FRAME_BYTES_MAX = 16_384
/** A WINDOW_UPDATE is sent for each such share of the window, not for each message. */
const UPDATE_SHARE = 1 / 4

/** Size of the reused read buffer; large, so that a busy connection needs few reads. */
const READ_BYTES = 256 * 1024
/** Bytes in the buffer pool while a stream is open: as many as four streams with full windows. */
const POOLED_BYTES_MAX = 16 * 1024 * 1024

/** Opens a socket that reads into a buffer of the caller. */
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
  const pool = new BufferPool({ pooledBytesMax: POOLED_BYTES_MAX })
  const sessionUpdateBytes = options.sessionWindowBytes * UPDATE_SHARE
  let sessionTaken = 0
  const connection = wrapSocket(socket)

  function sendWindowUpdate(streamId: number, bytes: number): void {
    if (bytes === 0 || !socket.writable) return
    const frame = Buffer.alloc(HEAD_BYTES + 4)
    frame.writeUIntBE(4, 0, 3)
    frame[3] = WINDOW_UPDATE
    frame.writeUInt32BE(streamId, 5)
    frame.writeUInt32BE(bytes, HEAD_BYTES)
    // The library writes whole frames only, so this frame does not split one.
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

    arrived(piece: Buffer, ranges: readonly number[], bytes: number): void {
      if (this.#isClosed) return
      const beforeBytes = this.#waitingBytes
      for (let i = 0; i < ranges.length; i += 2) {
        let from = ranges[i] as number
        const to = ranges[i + 1] as number
        while (from < to) from += this.#fill(piece.subarray(from, to), bytes - (this.#waitingBytes - beforeBytes))
      }
      if (this.#listener !== undefined && this.#isStarted && !this.#isPaused) this.#drain()
      // More than the window allows: such a server could fill the memory.
      if (this.#waitingBytes > options.streamWindowBytes) connection.destroy(new Error('flow control violated'))
    }

    /** Copies behind the bytes that wait already; returns how many fit. */
    #fill(bytes: Buffer, ahead: number): number {
      let last = this.#waiting.at(-1)
      if (last === undefined || last.used === last.acquired.bytes.length) {
        last = { acquired: pool.acquire(ahead), used: 0 }
        this.#waiting.push(last)
      }
      const filled = bytes.copy(last.acquired.bytes, last.used)
      last.used += filled
      this.#waitingBytes += filled
      return filled
    }

    /** Padding counts against the window too. */
    skipped(bytes: number): void {
      this.#taken += bytes
    }

    #deliver(listener: DataListener, { acquired, used }: Filled): void {
      this.#taken += used
      if (this.#taken >= options.streamWindowBytes * UPDATE_SHARE) {
        sendWindowUpdate(this.#id, this.#taken)
        this.#taken = 0
      }
      listener(acquired.bytes.subarray(0, used), () => acquired.release())
    }

    #drain(): void {
      const listener = this.#listener
      if (listener === undefined || !this.#isStarted) return
      while (this.#waiting.length > 0 && !this.#isPaused && !this.#isClosed) {
        const filled = this.#waiting.shift() as Filled
        this.#waitingBytes -= filled.used
        this.#deliver(listener, filled)
      }
      if (this.#waitingBytes === 0) this.#notifyEmpty()
    }

    #notifyEmpty(): void {
      const listener = this.#onEmpty
      this.#onEmpty = undefined
      listener?.()
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
      if (this.#waitingBytes === 0) this.#notifyEmpty()
    }

    close(): void {
      this.#isClosed = true
      for (const { acquired } of this.#waiting) acquired.release()
      this.#waiting = []
      this.#waitingBytes = 0
      streams.delete(this.#id)
      if (streams.size === 0) pool.clear()
      // The data that the listener waits for is dropped.
      this.#notifyEmpty()
    }
  }

  const reader = createFrameReader({
    tapOf: (streamId) => streams.get(streamId),
    pass: (bytes) => void connection.push(bytes),
    took(bytes) {
      sessionTaken += bytes
      if (sessionTaken < sessionUpdateBytes) return
      sendWindowUpdate(0, sessionTaken)
      sessionTaken = 0
    },
    fail: (reason) => void connection.destroy(new Error(reason)),
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

/** A buffer of which the first `used` bytes are filled. */
type Filled = { readonly acquired: AcquiredBuffer; used: number }

type Target = {
  /** Data in these ranges of the piece, starts and ends alternating; `bytes` in total. The piece is overwritten afterwards. */
  arrived(piece: Buffer, ranges: readonly number[], bytes: number): void
  /** Bytes of padding. */
  skipped(bytes: number): void
}

type ReaderDeps = {
  tapOf(streamId: number): Target | undefined
  /** Bytes for the library, in order. */
  pass(bytes: Buffer): void
  /** Bytes of DATA that the library does not see. */
  took(bytes: number): void
  /** The server violates the protocol: the connection ends. */
  fail(reason: string): void
}

/** The payloads of one stream in the piece: starts and ends alternating. */
type Gathered = { readonly target: Target; readonly ranges: number[]; bytes: number }

/**
 * Reads the frames of a connection from pieces of any size. The payloads of one stream in a piece are delivered together, so that a stream costs by the
 * read and not by the message.
 */
function createFrameReader({ tapOf, pass, took, fail }: ReaderDeps): (piece: Buffer) => void {
  /** An incomplete frame header. */
  let head: Buffer = NOTHING
  /** Payload bytes of the current frame that have not come. */
  let payloadLeft = 0
  let target: Target | undefined
  let endsStream = 0
  /** A padded frame is collected, because the length of its padding is in front. */
  let padded: Buffer[] | undefined
  /** The rest of the bytes is not read. */
  let isBroken = false
  const gathered: Gathered[] = []

  function gather(from: number, to: number): void {
    let own = gathered.find((one) => one.target === target)
    if (own === undefined) {
      own = { target: target as Target, ranges: [], bytes: 0 }
      gathered.push(own)
    }
    own.ranges.push(from, to)
    own.bytes += to - from
  }

  function deliver(piece: Buffer): void {
    for (const { target: to, ranges, bytes } of gathered.splice(0)) to.arrived(piece, ranges, bytes)
  }

  /** A frame that is taken out is complete. */
  function endFrame(piece: Buffer): void {
    if (padded !== undefined && target !== undefined) {
      const payload = Buffer.concat(padded)
      padded = undefined
      const dataEnd = payload.length - (payload[0] ?? 0)
      // A connection error (RFC 9113 section 6.1).
      if (dataEnd < 1) {
        isBroken = true
        return fail('more padding than payload')
      }
      const data = payload.subarray(1, dataEnd)
      target.skipped(payload.length - data.length)
      deliver(piece)
      target.arrived(data, [0, data.length], data.length)
    }
    if (endsStream === 0) return
    deliver(piece)
    const last = Buffer.alloc(HEAD_BYTES)
    last[4] = END_STREAM
    last.writeUInt32BE(endsStream, 5)
    pass(last)
  }

  return (chunk) => {
    const piece = head.length === 0 ? chunk : Buffer.concat([head, chunk])
    head = NOTHING
    let at = 0
    let passFrom = payloadLeft > 0 && target === undefined ? 0 : -1
    // The next read overwrites the piece, so the library gets a copy.
    const endPass = (to: number): void => {
      if (passFrom !== -1 && to > passFrom) pass(Buffer.from(piece.subarray(passFrom, to)))
      passFrom = -1
    }
    while (at < piece.length && !isBroken) {
      if (payloadLeft > 0) {
        const to = Math.min(piece.length, at + payloadLeft)
        payloadLeft -= to - at
        if (target !== undefined) {
          if (padded === undefined) gather(at, to)
          else padded.push(Buffer.from(piece.subarray(at, to)))
          if (payloadLeft === 0) endFrame(piece)
        }
        at = to
        continue
      }
      if (piece.length - at < HEAD_BYTES) break
      payloadLeft = ((piece[at] as number) << 16) | ((piece[at + 1] as number) << 8) | (piece[at + 2] as number)
      const streamId = piece.readUInt32BE(at + 5) & 0x7fffffff
      target = piece[at + 3] === DATA && payloadLeft <= FRAME_BYTES_MAX ? tapOf(streamId) : undefined
      if (target === undefined) {
        if (passFrom === -1) passFrom = at
      } else {
        endPass(at)
        const flags = piece[at + 4] as number
        took(payloadLeft)
        endsStream = (flags & END_STREAM) === 0 ? 0 : streamId
        padded = (flags & PADDED) === 0 ? undefined : []
        if (payloadLeft === 0) endFrame(piece)
      }
      at += HEAD_BYTES
    }
    endPass(at)
    deliver(piece)
    if (at < piece.length) head = Buffer.from(piece.subarray(at))
  }
}

const NOTHING = Buffer.alloc(0)

/** The socket as the library sees it: writes pass through, reads are pushed by the tap. */
function wrapSocket(socket: Socket): Duplex {
  const connection = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      socket.write(chunk, done)
    },
    // The frames of one write of the library stay together.
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
