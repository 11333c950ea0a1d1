import type { CryptoStream } from './crypto-stream.ts'
import type { KeyRing } from './key-ring.ts'
import { retryTag } from './keys.ts'
import type { Outbox } from './outbox.ts'
import { isSame, type Level, type PacketHead, VERSION_1 } from './packet.ts'
import type { PeerIds } from './peer-ids.ts'
import type { Recovery } from './recovery.ts'
import { checkIds, type PeerParameters } from './transport-parameters.ts'

export type HandshakeDeps = {
  readonly ids: PeerIds
  readonly keys: KeyRing
  readonly recovery: Recovery
  readonly outbox: Outbox
  /** The stream of the level `initial`. */
  readonly crypto: CryptoStream
}

/** Packets buffered until their keys are there. */
const HELD_MAX = 8
const RETRY_TAG_BYTES = 16

/** The exchange of connection ids with a server: its Retry, its version negotiation, the id of its first packet; and packets that arrive before their keys. */
export class Handshake {
  readonly #deps: HandshakeDeps
  /** The id that the client chose for the server, in its first packet. */
  readonly #firstDestination: Uint8Array
  #retrySource: Uint8Array | undefined
  #hasServerId = false
  #held: Uint8Array[] = []

  constructor(firstDestination: Uint8Array, deps: HandshakeDeps) {
    this.#firstDestination = firstDestination
    this.#deps = deps
  }

  get hasRetried(): boolean {
    return this.#retrySource !== undefined
  }

  /** The first packet of the server sets its connection id. False for a packet with another id than that. */
  receiveServerId(source: Uint8Array): boolean {
    const { ids } = this.#deps
    if (this.#hasServerId) return isSame(source, ids.current)
    this.#hasServerId = true
    ids.replaceFirst(Uint8Array.from(source))
    return true
  }

  /** Begins again with the token of a valid Retry; a client takes one, before anything else of the server. */
  retry(datagram: Uint8Array, head: Extract<PacketHead, { kind: 'retry' }>): void {
    const { ids, keys, outbox, recovery, crypto } = this.#deps
    const isLate = this.#hasServerId || this.hasRetried || head.token.length === 0
    const tagAt = head.to - RETRY_TAG_BYTES
    const body = datagram.subarray(head.from, tagAt)
    if (isLate || !isSame(retryTag(this.#firstDestination, body), datagram.subarray(tagAt, head.to))) return
    this.#retrySource = Uint8Array.from(head.source)
    ids.replaceFirst(this.#retrySource)
    keys.installInitial(this.#retrySource)
    outbox.token = Uint8Array.from(head.token)
    recovery.discard('initial')
    crypto.resendAll()
  }

  /** Whether a server that supports these versions cannot be used. */
  isVersionRefused(versions: readonly number[]): boolean {
    return !this.#hasServerId && !this.hasRetried && !versions.includes(VERSION_1)
  }

  /** Throws a QuicError for parameters with other ids than those of this exchange. */
  checkParameters(peer: PeerParameters): void {
    checkIds(peer, {
      originalDestination: this.#firstDestination,
      initialSource: this.#deps.ids.current,
      retrySource: this.#retrySource,
    })
  }

  /** A packet that arrives before its keys is buffered: networks reorder packets. */
  hold(packet: Uint8Array, level: Level): void {
    if (level !== 'initial' && this.#held.length < HELD_MAX) this.#held.push(Uint8Array.from(packet))
  }

  /** The buffered packets, once their keys are there. */
  takeHeld(): readonly Uint8Array[] {
    if (this.#held.length === 0 || !this.#deps.keys.has('handshake')) return []
    const held = this.#held
    this.#held = []
    return held
  }
}
