import type { BankId, Entry } from '../chain/model.ts'
import { writeBankId, writer } from './scratch.ts'

type EntryPosition = {
  readonly slot: number
  readonly index: number
  readonly createdAt: Uint8Array
  readonly bankId?: BankId
}

export class EntryUpdate {
  readonly kind = 'entry'
  readonly #entry: Entry
  readonly #position: EntryPosition
  #body: Uint8Array | undefined

  constructor(entry: Entry, position: EntryPosition) {
    this.#entry = entry
    this.#position = position
  }

  body(): Uint8Array {
    if (this.#body) return this.#body
    writer.message(8, () => this.#write())
    writer.raw(this.#position.createdAt)
    this.#body = writer.take()
    return this.#body
  }

  /** Only the message SubscribeUpdateEntry, for blocks. */
  info(): Uint8Array {
    this.#write()
    return writer.take()
  }

  #write(): void {
    writer.uint(1, this.#position.slot)
    writer.uint(2, this.#position.index)
    writer.uint(3, this.#entry.numHashes)
    writer.bytes(4, this.#entry.hash)
    writer.uint(5, this.#entry.transactionCount)
    writer.uint(6, this.#entry.firstTransaction)
    writeBankId(7, this.#position.bankId)
  }
}
