import { timingSafeEqual } from 'node:crypto'
import { isSame } from './packet.ts'
import { CODES, QuicError } from './wire.ts'

type PeerId = { readonly sequence: number; readonly id: Uint8Array; readonly resetToken: Uint8Array | undefined }

/** Spare connection ids of the peer, sent as active_connection_id_limit. */
export const IDS_MAX = 4
/** Retired ids whose RETIRE_CONNECTION_ID is not acknowledged; at the limit the connection is closed (RFC 9000 section 5.1.2). */
const RETIRED_MAX = 64

/** The connection ids of the peer and their stateless reset tokens. */
export class PeerIds {
  #ids: PeerId[]
  #retirePrior = 0
  /** Sequence numbers for RETIRE_CONNECTION_ID, until they are sent. */
  readonly retired: number[] = []
  /** Until they are acknowledged. */
  readonly #unacked = new Set<number>()

  constructor(first: Uint8Array) {
    this.#ids = [{ sequence: 0, id: first, resetToken: undefined }]
  }

  get current(): Uint8Array {
    return (this.#ids[0] as PeerId).id
  }

  /** The handshake replaces the first id: by that of a Retry, then by the server's choice. */
  replaceFirst(id: Uint8Array): void {
    this.#ids[0] = { ...(this.#ids[0] as PeerId), id }
  }

  setFirstToken(resetToken: Uint8Array): void {
    this.#ids[0] = { ...(this.#ids[0] as PeerId), resetToken }
  }

  add({
    sequence,
    id,
    resetToken,
    retirePrior,
  }: PeerId & { readonly resetToken: Uint8Array; readonly retirePrior: number }): void {
    const known = this.#ids.find((one) => one.sequence === sequence)
    if (known !== undefined) {
      if (!isSame(known.id, id))
        throw new QuicError(CODES.protocolViolation, 'one sequence number for two connection ids')
      return
    }
    if (sequence < this.#retirePrior) this.#retire(sequence)
    else this.#ids.push({ sequence, id: Uint8Array.from(id), resetToken: Uint8Array.from(resetToken) })
    if (retirePrior > this.#retirePrior) {
      this.#retirePrior = retirePrior
      for (const one of this.#ids) if (one.sequence < retirePrior) this.#retire(one.sequence)
      this.#ids = this.#ids.filter((one) => one.sequence >= retirePrior)
    }
    if (this.#ids.length > IDS_MAX) throw new QuicError(CODES.connectionIdLimit, 'more connection ids than allowed')
    if (this.#ids.length === 0) throw new QuicError(CODES.protocolViolation, 'no connection id is left')
  }

  #retire(sequence: number): void {
    if (this.#unacked.has(sequence)) return
    if (this.#unacked.size >= RETIRED_MAX)
      throw new QuicError(CODES.connectionIdLimit, 'connection ids are retired faster than acknowledged')
    this.#unacked.add(sequence)
    this.retired.push(sequence)
  }

  /** The peer has acknowledged RETIRE_CONNECTION_ID. */
  retireAcked(sequence: number): void {
    this.#unacked.delete(sequence)
  }

  /** Whether an undecryptable datagram ends in one of the peer's reset tokens (RFC 9000 section 10.3.1). */
  isReset(datagram: Uint8Array): boolean {
    if (datagram.length < 21) return false
    const end = datagram.subarray(datagram.length - 16)
    let isReset = false
    for (const { resetToken } of this.#ids)
      if (resetToken !== undefined && timingSafeEqual(end, resetToken)) isReset = true
    return isReset
  }
}
