import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { BatchWriter, WriteBatching } from '../../net/write-batching.ts'
import type { ResponseRest } from '../response-rest.ts'
import { type HttpResponse, PIECE_BYTES, piecesOf } from './post.ts'

/** Text of up to this size the runtime writes without allocating (`StreamBase::WriteString` has a buffer of it on its stack). */
const TEXT_BYTES_MAX = 16 * 1024
const LAST_CHUNK = '0\r\n\r\n'

/** Is called with the bytes of a body as they are written. */
export type SentBytes = { onBodySent?(bytes: number): void }

/** Writes the responses of one connection, one at a time. */
export class FastPathOutput implements BatchWriter {
  readonly #socket: Socket
  /** A write over TLS is never complete at once, so the socket has to call back. Over TCP it mostly is, and the callback would cost 5 µs. */
  readonly #isTls: boolean
  readonly #writes: WriteBatching
  readonly #onWritten: (isTaken: boolean) => void
  /** Head and body of a small response, one character a byte, until the end of the turn; of a larger one the head only. */
  #text = ''
  #body: Buffer | undefined
  #pooled: HttpResponse['pooled']
  #rest: ResponseRest | undefined
  /** Called when the small response that waits is written. */
  #sent: SentBytes | undefined
  #bodyBytes = 0

  /** `onWritten` is called when a response is completely written; `isTaken` when nothing of it waits for the peer. */
  constructor(socket: Socket, writes: WriteBatching, onWritten: (isTaken: boolean) => void) {
    this.#socket = socket
    this.#isTls = socket instanceof TLSSocket
    this.#writes = writes
    this.#onWritten = onWritten
  }

  write(head: string, body: Buffer, { rest, pooled }: Pick<HttpResponse, 'rest' | 'pooled'>, sent?: SentBytes): void {
    if (rest !== undefined) return this.#writeChunked(head, body, rest, sent)
    if (body.length > PIECE_BYTES) return this.#writePieces(head, body, sent)
    const isText = head.length + body.length <= TEXT_BYTES_MAX
    this.#text = isText ? head + body.toString('latin1') : head
    this.#body = isText ? undefined : body
    // The text is a copy.
    if (isText) pooled?.release()
    else this.#pooled = pooled
    this.#sent = sent
    this.#bodyBytes = body.length
    this.#writes.add(this)
  }

  /** Called at the end of the turn in which a small response was made. */
  writeNow(): void {
    const text = this.#text
    const body = this.#body
    const pooled = this.#pooled
    const sent = this.#sent
    this.#text = ''
    this.#body = undefined
    this.#pooled = undefined
    this.#sent = undefined
    if (text === '') return
    sent?.onBodySent?.(this.#bodyBytes)
    if (body === undefined) return this.#onWritten(this.#socket.write(text, 'latin1'))
    this.#socket.cork()
    this.#socket.write(text, 'latin1')
    const onBodyWritten = this.#isTls && pooled !== undefined ? releaseUnlessFailed(pooled) : undefined
    const isTaken = this.#socket.write(body, onBodyWritten)
    this.#socket.uncork()
    // Otherwise the socket still reads from the body, until its peer reads.
    if (this.#socket.writableLength === 0) pooled?.release()
    this.#onWritten(isTaken)
  }

  /** The socket has drained. True when a response still streams. */
  resume(): boolean {
    if (this.#rest === undefined) return false
    this.#rest.resume()
    return true
  }

  /** The connection is closed. */
  abort(): void {
    this.#text = ''
    this.#body = undefined
    this.#pooled = undefined
    this.#sent = undefined
    this.#rest?.abort()
    this.#rest = undefined
  }

  #writePieces(head: string, body: Buffer, sent: SentBytes | undefined): void {
    sent?.onBodySent?.(body.length)
    let isTaken = this.#socket.write(head, 'latin1')
    for (const piece of piecesOf(body)) isTaken = this.#socket.write(piece)
    this.#onWritten(isTaken)
  }

  /** A response of unknown length: the source is paused while the peer does not read. */
  #writeChunked(head: string, body: Buffer, rest: ResponseRest, sent: SentBytes | undefined): void {
    const socket = this.#socket
    this.#rest = rest
    socket.cork()
    socket.write(head, 'latin1')
    this.#writeChunk(body)
    sent?.onBodySent?.(body.length)
    socket.uncork()
    rest.start({
      onData: (chunk) => {
        sent?.onBodySent?.(chunk.length)
        if (!this.#writeChunk(chunk)) rest.pause()
      },
      onEnd: () => {
        if (this.#rest !== rest) return
        this.#rest = undefined
        this.#onWritten(socket.write(LAST_CHUNK, 'latin1'))
      },
      // The status has left already: only a closed connection shows that the body is incomplete.
      onFail: () => void socket.destroy(),
    })
  }

  #writeChunk(bytes: Buffer): boolean {
    const socket = this.#socket
    // A chunk of no bytes would be the last one.
    if (bytes.length === 0) return !socket.writableNeedDrain
    socket.cork()
    socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1')
    socket.write(bytes)
    const isTaken = socket.write('\r\n', 'latin1')
    socket.uncork()
    return isTaken
  }
}

/** After a failed write it is not known who still reads the memory; the garbage collector takes it. */
function releaseUnlessFailed(pooled: NonNullable<HttpResponse['pooled']>): (error?: Error | null) => void {
  return (error) => {
    if (error === undefined || error === null) pooled.release()
  }
}
