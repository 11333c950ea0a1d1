import type { CryptoStream } from './crypto-stream.ts'
import { writeAck, writeClose, writeCrypto, writeStream } from './frames.ts'
import type { KeyRing } from './key-ring.ts'
import { type Level, packetOverhead, writePacket } from './packet.ts'
import type { PeerIds } from './peer-ids.ts'
import type { ReceivedPackets } from './received-packets.ts'
import { type Carried, LEVELS, type Recovery } from './recovery.ts'
import type { SendStreams } from './send-streams.ts'
import { ByteWriter, CODES } from './wire.ts'

export type OutboxParts = {
  readonly source: Uint8Array
  readonly ids: PeerIds
  readonly keys: KeyRing
  readonly recovery: Recovery
  readonly streams: SendStreams
  readonly received: Readonly<Record<Level, ReceivedPackets>>
  readonly crypto: Readonly<Record<Level, CryptoStream>>
  readonly keyUpdatePackets: number
  send(datagram: Uint8Array): void
}

type ControlFrame = {
  write(to: ByteWriter): void
  isAcked: boolean
  /** Not sent again when it is lost. */
  readonly isOnce: boolean
  onAcked?(): void
}

type Draft = {
  readonly level: Level
  readonly payload: Uint8Array
  readonly carried: Carried[]
  readonly isEliciting: boolean
}

/** The datagram size that every path supports (RFC 9000 section 14). */
const DATAGRAM_BYTES = 1200
/** Leaves room for the longest header and the fields of a frame. */
const PIECE_BYTES = 1100
/** Datagrams sent at once, so that one connection does not delay the others. */
const BURST = 64
const CONTROL_BYTES = 32
/** Pending small frames; beyond it, optional ones are dropped. */
const CONTROL_MAX = 1024
const NO_TOKEN = new Uint8Array(0)

/** Writes frames into packets and packets into datagrams, within the congestion window. */
export class Outbox {
  static readonly datagramBytes = DATAGRAM_BYTES
  static readonly pieceBytes = PIECE_BYTES

  readonly #parts: OutboxParts
  readonly #next: Record<Level, number> = { initial: 0, handshake: 0, application: 0 }
  /** Small frames that must arrive. */
  #control: ControlFrame[] = []
  #probes: Record<Level, number> = { initial: 0, handshake: 0, application: 0 }
  #reportedBlocked = ''
  #closeDatagram: Uint8Array = NO_TOKEN
  #closeResponses = 0
  #phasePackets = 0
  #phaseFrom = 0
  token: Uint8Array = NO_TOKEN
  packetsSent = 0
  lastElicitingAtMs = Number.NEGATIVE_INFINITY
  /** The first packet sent since the last one received: idle time counts from there. */
  firstUnheardAtMs = Number.NEGATIVE_INFINITY
  /** Set to false when a packet is received. */
  isSilentSince = false

  constructor(parts: OutboxParts) {
    this.#parts = parts
  }

  nextNumber(level: Level): number {
    return this.#next[level]
  }

  /** Probe packets, sent regardless of the window; a PING where nothing else is pending. */
  probe(level: Level, packets: number): void {
    this.#probes[level] = packets
  }

  reset(stream: number, code: number, finalBytes: number): void {
    this.#addControl((to) => to.u8(0x04).varint(stream).varint(code).varint(finalBytes))
  }

  respondToPath(data: Uint8Array): void {
    const copy = Uint8Array.from(data)
    this.#addControl((to) => to.u8(0x1b).put(copy), true)
  }

  #retire(sequence: number): void {
    this.#control.push({
      write: (to) => to.u8(0x19).varint(sequence),
      isAcked: false,
      isOnce: false,
      onAcked: () => this.#parts.ids.retireAcked(sequence),
    })
  }

  #addControl(write: (to: ByteWriter) => void, isOnce = false): void {
    if (isOnce && this.#control.length >= CONTROL_MAX) return
    this.#control.push({ write, isAcked: false, isOnce })
  }

  /** `isCut`: more may be sent, after other connections had their turn. */
  flush(
    nowMs: number,
    { isAckDue, mayStream }: { isAckDue: boolean; mayStream: boolean },
  ): { hasAck: boolean; hasHandshake: boolean; isCut: boolean } {
    const { ids, keys } = this.#parts
    for (const sequence of ids.retired.splice(0)) this.#retire(sequence)
    this.#reportBlocked(mayStream)
    let hasAck = false
    let hasHandshake = false
    let burst = 0
    for (; burst < BURST; burst++) {
      const drafts: Draft[] = []
      let used = 0
      for (const level of LEVELS) {
        if (!keys.has(level)) continue
        const room = DATAGRAM_BYTES - used - packetOverhead(level, ids.current, this.#parts.source, this.token)
        const draft =
          room > CONTROL_BYTES
            ? this.#draft(level, room, { nowMs, isAckDue: isAckDue && !hasAck, mayStream })
            : undefined
        if (draft === undefined) continue
        drafts.push(draft)
        used += draft.payload.length + packetOverhead(level, ids.current, this.#parts.source, this.token)
        if (level === 'handshake') hasHandshake = true
      }
      if (drafts.length === 0) break
      if (isAckDue) hasAck = true
      this.#parts.send(this.#seal(drafts, nowMs))
    }
    return { hasAck, hasHandshake, isCut: burst === BURST }
  }

  /** Sent once for each limit: the peer may raise it in response. */
  #reportBlocked(mayStream: boolean): void {
    const { streams } = this.#parts
    const blocked = mayStream ? streams.blocked : undefined
    const reported = blocked === undefined ? '' : `${blocked.by} ${blocked.at}`
    if (blocked === undefined || reported === this.#reportedBlocked) return
    this.#reportedBlocked = reported
    this.#addControl((to) => to.u8(blocked.by === 'streams' ? 0x17 : 0x14).varint(blocked.at), true)
  }

  #draft(
    level: Level,
    room: number,
    { nowMs, isAckDue, mayStream }: { nowMs: number; isAckDue: boolean; mayStream: boolean },
  ): Draft | undefined {
    const { recovery, received, crypto, streams } = this.#parts
    if (!this.#hasToSend(level, { isAckDue, mayStream })) return undefined
    const write = new ByteWriter(room)
    const carried: Carried[] = []
    let isEliciting = false
    const mine = received[level]
    if (isAckDue && mine.unacked > 0) {
      const delay = level === 'application' ? Math.max(0, Math.floor(((nowMs - mine.largestAtMs) * 1000) / 8)) : 0
      if (writeAck(write, mine.ranges, delay)) mine.unacked = 0
    }
    const isProbe = this.#probes[level] > 0
    const mayFill = isProbe || recovery.bytesInFlight + DATAGRAM_BYTES <= recovery.windowBytes
    if (mayFill) {
      for (let piece = crypto[level].next(write.left); piece !== undefined; piece = crypto[level].next(write.left)) {
        writeCrypto(write, piece.offset, piece.data)
        carried.push(piece.carried)
        isEliciting = true
      }
      if (level === 'application' && mayStream) {
        isEliciting = this.#writeControl(write, carried) || isEliciting
        const nextPiece = () => streams.next(write.left)
        for (let piece = nextPiece(); piece !== undefined; piece = nextPiece()) {
          writeStream(write, piece)
          carried.push(piece.carried)
          isEliciting = true
        }
      }
    }
    if (isProbe) {
      this.#probes[level] -= 1
      if (!isEliciting) {
        write.u8(0x01)
        isEliciting = true
      }
    }
    return write.at === 0 ? undefined : { level, payload: write.written, carried, isEliciting }
  }

  /** Checked before a packet is begun: each flush would otherwise end with an empty packet. */
  #hasToSend(level: Level, { isAckDue, mayStream }: { isAckDue: boolean; mayStream: boolean }): boolean {
    const { received, crypto, streams } = this.#parts
    if (this.#probes[level] > 0 || (isAckDue && received[level].unacked > 0) || crypto[level].hasToSend) return true
    return level === 'application' && mayStream && (this.#control.length > 0 || streams.hasToSend())
  }

  #writeControl(write: ByteWriter, carried: Carried[]): boolean {
    let wrote = false
    while (this.#control.length > 0 && write.left >= CONTROL_BYTES) {
      const frame = this.#control.shift() as ControlFrame
      if (frame.isAcked) continue
      frame.write(write)
      wrote = true
      if (frame.isOnce) continue
      carried.push({
        acked: () => {
          frame.isAcked = true
          frame.onAcked?.()
        },
        lost: () => {
          if (!frame.isAcked && !this.#control.includes(frame)) this.#control.push(frame)
        },
      })
    }
    return wrote
  }

  #seal(drafts: readonly Draft[], nowMs: number): Uint8Array {
    const { keys, recovery, ids, source } = this.#parts
    const hasInitial = drafts.some(({ level }) => level === 'initial')
    const packets: Uint8Array[] = []
    let bytes = 0
    for (const [at, { level, payload, carried, isEliciting }] of drafts.entries()) {
      if (level === 'application') this.#countPhase(nowMs)
      const packetNumber = this.#next[level]
      this.#next[level] += 1
      const packet = writePacket(
        {
          level,
          packetNumber,
          largestAcked: recovery.largestAcked(level),
          destination: ids.current,
          source,
          token: this.token,
          keyPhase: keys.phase,
          payload,
          // A datagram with an Initial packet is padded, which proves that the path supports the size.
          sizeMin: hasInitial && at === drafts.length - 1 ? DATAGRAM_BYTES - bytes : 0,
        },
        keys.send(level) as NonNullable<ReturnType<typeof keys.send>>,
      )
      packets.push(packet)
      bytes += packet.length
      this.packetsSent += 1
      if (!isEliciting) continue
      recovery.onSent(level, { packetNumber, sentAtMs: nowMs, bytes: packet.length, carried })
      this.lastElicitingAtMs = nowMs
      if (!this.isSilentSince) {
        this.isSilentSince = true
        this.firstUnheardAtMs = nowMs
      }
    }
    return packets.length === 1 ? (packets[0] as Uint8Array) : Buffer.concat(packets)
  }

  /** Updates the keys after enough packets, once the peer has used the current ones. */
  #countPhase(nowMs: number): void {
    const { keys, recovery, keyUpdatePackets } = this.#parts
    this.#phasePackets += 1
    if (this.#phasePackets < keyUpdatePackets || !recovery.isConfirmed) return
    if (recovery.largestAcked('application') < this.#phaseFrom) return
    keys.update(nowMs + 3 * recovery.ptoMs)
    this.#phasePackets = 0
    this.#phaseFrom = this.#next.application
  }

  /** In every level that the peer may be able to read (RFC 9000 section 10.2.3). */
  close(end: { code: number; isApplication: boolean; message: string }, nowMs: number): void {
    const { keys, recovery } = this.#parts
    const levels =
      keys.has('application') && recovery.isConfirmed
        ? (['application'] as const)
        : LEVELS.filter((level) => keys.has(level))
    const drafts = levels.map((level): Draft => {
      const write = new ByteWriter(256)
      // Before the handshake is complete, no application error is revealed.
      const isHidden = end.isApplication && level !== 'application'
      writeClose(
        write,
        isHidden ? { code: CODES.application, isApplication: false, reason: '' } : { ...end, reason: end.message },
      )
      return { level, payload: write.written, carried: [], isEliciting: false }
    })
    this.#closeDatagram = this.#seal(drafts, nowMs)
    this.#parts.send(this.#closeDatagram)
  }

  /** Repeats CONNECTION_CLOSE to a peer that continues to send, less and less often. */
  respondWithClose(): void {
    this.#closeResponses += 1
    // 1, 2, 4, 8, …
    if ((this.#closeResponses & (this.#closeResponses - 1)) === 0) this.#parts.send(this.#closeDatagram)
  }
}
