import { applyFrame } from './apply-frame.ts'
import { ENDS, printEnd, type QuicDeps, type QuicEnd, type QuicOptions, type QuicState } from './connection-options.ts'
import { CryptoStream } from './crypto-stream.ts'
import { Deadlines } from './deadlines.ts'
import { type Frame, isAckEliciting, readFrames } from './frames.ts'
import { Handshake } from './handshake.ts'
import { IdleTimeout } from './idle-timeout.ts'
import { KeyRing } from './key-ring.ts'
import { OneTimer } from './one-timer.ts'
import { Outbox } from './outbox.ts'
import { type Level, type OpenedPacket, type PacketHead, readPacketHeads } from './packet.ts'
import { IDS_MAX, PeerIds } from './peer-ids.ts'
import { ReceivedPackets } from './received-packets.ts'
import { LEVELS, Recovery } from './recovery.ts'
import { SendStreams, type StreamDone } from './send-streams.ts'
import { createTlsClient, type TlsClient } from './tls-client.ts'
import { type PeerParameters, readPeerParameters, writeOwnParameters } from './transport-parameters.ts'
import { CODES, QuicError } from './wire.ts'

const ID_BYTES = 8

/** A QUIC version 1 client connection that sends one-way streams and takes none (RFC 9000, 9001, 9002). */
export class QuicConnection {
  readonly #deps: QuicDeps
  readonly #source: Uint8Array
  readonly #ids: PeerIds
  readonly #keys: KeyRing
  readonly #recovery: Recovery
  readonly #streams: SendStreams
  readonly #outbox: Outbox
  readonly #tls: TlsClient
  readonly #timer: OneTimer
  readonly #received = forLevels(() => new ReceivedPackets())
  readonly #crypto = forLevels(() => new CryptoStream())
  readonly #handshake: Handshake
  readonly #idleTimeout: IdleTimeout
  readonly #deadlines: Deadlines
  #state: QuicState = 'handshaking'
  #peer: PeerParameters | undefined
  #isFlushPlanned = false
  /** When a connection that has ended may be forgotten. */
  #goneAtMs = Number.POSITIVE_INFINITY
  #peerKey: Uint8Array | undefined

  constructor(options: QuicOptions, deps: QuicDeps) {
    this.#deps = deps
    this.#keys = new KeyRing(deps.seal)
    this.#source = deps.randomBytes(ID_BYTES)
    const firstDestination = deps.randomBytes(ID_BYTES)
    this.#ids = new PeerIds(firstDestination)
    this.#keys.installInitial(firstDestination)
    this.#recovery = new Recovery({
      initialWindowBytes: options.initialWindowBytes,
      windowBytesMin: options.windowBytesMin,
      datagramBytes: Outbox.datagramBytes,
    })
    this.#streams = new SendStreams({
      queuedMax: options.streamsQueuedMax,
      activeMax: options.streamsActiveMax,
      pieceBytesMax: Outbox.pieceBytes,
    })
    this.#outbox = new Outbox({
      source: this.#source,
      ids: this.#ids,
      keys: this.#keys,
      recovery: this.#recovery,
      streams: this.#streams,
      received: this.#received,
      crypto: this.#crypto,
      keyUpdatePackets: options.keyUpdatePackets,
      send: (datagram) => deps.send(datagram),
    })
    this.#handshake = new Handshake(firstDestination, {
      ids: this.#ids,
      keys: this.#keys,
      recovery: this.#recovery,
      outbox: this.#outbox,
      crypto: this.#crypto.initial,
    })
    this.#timer = new OneTimer(deps.clock, () => this.#onTimer())
    this.#idleTimeout = new IdleTimeout(options, deps.clock.monotonicMs())
    this.#deadlines = new Deadlines({
      idleTimeout: this.#idleTimeout,
      recovery: this.#recovery,
      keys: this.#keys,
      outbox: this.#outbox,
    })
    this.#tls = createTlsClient(options, {
      randomBytes: deps.randomBytes,
      onSend: (level, bytes) => this.#crypto[level].write(bytes, Outbox.pieceBytes),
      onSecrets: (level, secrets) => this.#keys.install(level, secrets),
      onTransportParameters: (bytes) => this.#applyParameters(readPeerParameters(bytes)),
      isPeer: (publicKey) => {
        this.#peerKey = publicKey
        return deps.isPeer(publicKey)
      },
      onDone: () => {
        this.#state = 'open'
        deps.onOpen()
      },
    })
    this.#tls.start(writeOwnParameters({ idleTimeoutMs: options.idleTimeoutMs, source: this.#source, idsMax: IDS_MAX }))
    this.#work()
  }

  get state(): QuicState {
    return this.#state
  }

  /** The key that the server proved to hold. */
  get peerKey(): Uint8Array | undefined {
    return this.#peerKey
  }

  get stats() {
    const { smoothedMs, lostPackets, windowBytes, bytesInFlight } = this.#recovery
    return {
      rttMs: smoothedMs,
      lostPackets,
      packetsSent: this.#outbox.packetsSent,
      windowBytes,
      bytesInFlight,
      keyUpdates: this.#keys.updates,
      hasRetried: this.#handshake.hasRetried,
      queued: this.#streams.queued,
      active: this.#streams.active,
    }
  }

  /**
   * Sends the bytes as one stream. Returns false when too many wait or the connection has ended; otherwise `done` is called exactly
   * once, and before this returns if the peer takes no stream of this length.
   */
  send(bytes: Uint8Array, done: StreamDone): boolean {
    if (this.#state !== 'handshaking' && this.#state !== 'open') return false
    if (!this.#streams.offer(bytes, done)) return false
    if (this.#state === 'open') this.#workSoon()
    return true
  }

  /** Streams of one event-loop iteration share packets. */
  #workSoon(): void {
    if (this.#isFlushPlanned) return
    this.#isFlushPlanned = true
    this.#deps.soon(() => {
      this.#isFlushPlanned = false
      this.#work()
    })
  }

  close(code = 0, message = ''): void {
    this.#shut({ by: 'us', code, isApplication: true, message })
  }

  /** Ends the connection because no packet can be sent to the peer. */
  abandon(message: string): void {
    this.#end('gone', { ...ENDS.unreachable, message })
  }

  receive(datagram: Uint8Array): void {
    if (this.#state === 'gone' || this.#state === 'draining') return
    if (this.#state === 'closing') return this.#outbox.respondWithClose()
    try {
      this.#readDatagram(datagram)
      this.#work()
    } catch (error) {
      if (!(error instanceof QuicError)) throw error
      this.#shut({ by: 'fault', code: error.code, isApplication: false, message: error.message })
    }
  }

  #readDatagram(datagram: Uint8Array): void {
    let isOurs = false
    for (const head of readPacketHeads(datagram, this.#source)) {
      if (head.kind === 'retry') return this.#handshake.retry(datagram, head)
      if (head.kind === 'version-negotiation') {
        if (this.#handshake.isVersionRefused(head.versions)) this.#end('draining', ENDS.version)
        return
      }
      if (head.kind === 'skipped') continue
      if (!this.#keys.has(head.level)) {
        if (this.#state === 'handshaking') this.#handshake.hold(datagram.subarray(head.from, head.to), head.level)
        continue
      }
      if (this.#readPacket(datagram, head)) isOurs = true
      if (this.#isOver()) return
    }
    if (!isOurs && this.#ids.isReset(datagram)) {
      this.#end('draining', ENDS.reset)
    }
  }

  #isOver(): boolean {
    return this.#state !== 'handshaking' && this.#state !== 'open'
  }

  #readPacket(datagram: Uint8Array, head: Extract<PacketHead, { kind: 'protected' }>): boolean {
    const nowMs = this.#deps.clock.monotonicMs()
    const received = this.#received[head.level]
    const opened = this.#keys.open(datagram, head, {
      largest: received.largest,
      nowMs,
      keepOldMs: 3 * this.#recovery.ptoMs,
    })
    if (opened === undefined) return false
    if (!received.add(opened.packetNumber, nowMs)) return true
    // Packets of the handshake with another id belong to another connection.
    if (head.level !== 'application' && !this.#handshake.receiveServerId(head.source) && this.#state !== 'open')
      return true
    this.#idleTimeout.heardAtMs = nowMs
    this.#outbox.isSilentSince = false
    this.#onFrames(head.level, opened, nowMs)
    return true
  }

  #onFrames(level: Level, { payload }: OpenedPacket, nowMs: number): void {
    let wantsAck = false
    for (const frame of readFrames(payload)) {
      if (isAckEliciting(frame)) wantsAck = true
      this.#onFrame(level, frame, nowMs)
      if (this.#isOver()) return
    }
    if (wantsAck) this.#deadlines.planAck(level, this.#received[level], nowMs)
  }

  #onFrame(level: Level, frame: Frame, nowMs: number): void {
    switch (frame.type) {
      case 'padding':
      case 'ping':
        return
      case 'ack': {
        const exponent = level === 'application' ? (this.#peer?.ackDelayExponent ?? 3) : 3
        const delayMs = (frame.delay * 2 ** exponent) / 1000
        const nextNumber = this.#outbox.nextNumber(level)
        if (!this.#recovery.onAck(level, frame.ranges, { delayMs, nowMs, nextNumber })) {
          throw new QuicError(CODES.protocolViolation, 'an ACK of a packet that was not sent')
        }
        return
      }
      case 'crypto':
        for (const { type, message } of this.#crypto[level].receive(frame.offset, frame.data))
          this.#tls.receive(level, type, message)
        for (const packet of this.#handshake.takeHeld()) this.#readDatagram(packet)
        return
      case 'close':
        return this.#end('draining', {
          by: 'peer',
          code: frame.code,
          isApplication: frame.isApplication,
          message: frame.reason,
        })
      default:
        if (level !== 'application')
          throw new QuicError(CODES.protocolViolation, `${frame.type} before the handshake is over`)
        if (frame.type === 'handshake-done') this.#onConfirmed()
        else applyFrame(frame, { streams: this.#streams, ids: this.#ids, outbox: this.#outbox })
    }
  }

  #onConfirmed(): void {
    if (this.#state !== 'open') throw new QuicError(CODES.protocolViolation, 'the handshake is not over')
    if (this.#recovery.isConfirmed) return
    this.#recovery.isConfirmed = true
    this.#discard('handshake')
  }

  #applyParameters(peer: PeerParameters): void {
    this.#handshake.checkParameters(peer)
    this.#peer = peer
    this.#idleTimeout.peerIdleMs = peer.idleTimeoutMs
    this.#recovery.peerAckDelayMsMax = peer.ackDelayMsMax
    if (peer.resetToken !== undefined) this.#ids.setFirstToken(peer.resetToken)
    this.#streams.begin({ dataMax: peer.dataMax, streamDataMax: peer.uniStreamDataMax, streamsMax: peer.uniStreamsMax })
  }

  #discard(level: Level): void {
    this.#keys.discard(level)
    this.#recovery.discard(level)
    this.#received[level].unacked = 0
  }

  /** Sends what is pending and sets the timer. */
  #work(): void {
    if (this.#isOver()) return
    const nowMs = this.#deps.clock.monotonicMs()
    const isAckDue = this.#deadlines.isAckDue(nowMs)
    const sent = this.#outbox.flush(nowMs, { isAckDue, mayStream: this.#state === 'open' })
    this.#deadlines.isFlushCut = sent.isCut
    if (isAckDue || sent.hasAck) this.#deadlines.clearAck()
    if (sent.hasHandshake && this.#keys.has('initial')) this.#discard('initial')
    this.#setTimer(nowMs)
  }

  #onTimer(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    const state = this.#state
    if (state !== 'handshaking' && state !== 'open') {
      if (nowMs < this.#goneAtMs) return this.#setTimer(nowMs)
      this.#state = 'gone'
      return this.#deps.onGone()
    }
    if (nowMs >= this.#deadlines.idleAtMs) return this.#end('gone', ENDS.idle)
    if (nowMs >= this.#deadlines.handshakeAtMs(state)) return this.#end('gone', ENDS.handshakeTimeout)
    const due = this.#deadlines.recovery(nowMs)
    if (nowMs >= due.atMs) {
      if (due.kind === 'loss') this.#recovery.detectLost(due.level, nowMs)
      else {
        this.#recovery.ptoCount += 1
        this.#recovery.repeatOldest(due.level, 2)
        this.#outbox.probe(due.level, 2)
      }
    }
    if (nowMs >= this.#deadlines.keepAliveAtMs(state)) this.#outbox.probe('application', 1)
    this.#work()
  }

  #setTimer(nowMs: number): void {
    const state = this.#state
    const isRunning = state === 'handshaking' || state === 'open'
    this.#timer.set(isRunning ? this.#deadlines.nextMs(state, nowMs) : this.#goneAtMs, nowMs)
  }

  /** Sends CONNECTION_CLOSE and stays in the closing state, to repeat it when the peer continues to send. */
  #shut(end: QuicEnd): void {
    if (this.#isOver()) return
    this.#outbox.close(end, this.#deps.clock.monotonicMs())
    this.#end('closing', end)
  }

  #end(state: 'closing' | 'draining' | 'gone', end: QuicEnd): void {
    if (this.#isOver()) return
    this.#state = state
    const nowMs = this.#deps.clock.monotonicMs()
    this.#goneAtMs = state === 'gone' ? nowMs : nowMs + 3 * this.#recovery.ptoMs
    for (const level of LEVELS) this.#recovery.discard(level)
    this.#timer.cancel()
    this.#streams.failAll(printEnd(end))
    this.#deps.onEnd(end)
    if (state === 'gone') this.#deps.onGone()
    else this.#setTimer(nowMs)
  }
}

function forLevels<Value>(make: () => Value): Record<Level, Value> {
  return { initial: make(), handshake: make(), application: make() }
}
