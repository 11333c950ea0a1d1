import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { writeTransaction } from '../../solana/geyser/write-transaction.ts'
import { isSimpleVote } from '../../solana/transaction/simple-vote.ts'
import type { ParsedTransaction } from '../../solana/transaction/transaction.ts'
import type { BankId, TransactionRecord } from '../chain/model.ts'
import { keysOf, parseRecorded } from '../chain/transaction-facts.ts'
import { writeError, writeMeta } from './encode-transaction.ts'
import { infoOf, writeBankId, writer } from './scratch.ts'

export class TransactionUpdate {
  readonly kind = 'transaction'
  readonly record: TransactionRecord
  readonly #createdAt: Uint8Array
  readonly #bankId: BankId
  #isVote: boolean | undefined
  #keys: ReadonlySet<string> | undefined
  #body: Uint8Array | undefined
  #statusBody: Uint8Array | undefined

  constructor(record: TransactionRecord, createdAt: Uint8Array, bankId?: BankId) {
    this.record = record
    this.#createdAt = createdAt
    this.#bankId = bankId
  }

  get isVote(): boolean {
    return (this.#isVote ??= isSimpleVote(this.#parse()))
  }

  /** Every address of the transaction, including those loaded from lookup tables. */
  get keys(): ReadonlySet<string> {
    return (this.#keys ??= keysOf(this.#parse(), this.record.meta))
  }

  body(): Uint8Array {
    return (this.#body ??= this.#encode())
  }

  statusBody(): Uint8Array {
    return (this.#statusBody ??= this.#encodeStatus())
  }

  /** Only the message SubscribeUpdateTransactionInfo, for blocks. */
  info(): Uint8Array {
    return infoOf(this.body())
  }

  /** Not cached: a block of parsed transactions takes more memory than parsing them again is worth. */
  #parse(): ParsedTransaction {
    return parseRecorded(this.record)
  }

  #encode(): Uint8Array {
    const { meta, index, slot } = this.record
    const parsed = this.#parse()
    this.#isVote ??= isSimpleVote(parsed)
    writer.message(4, () => {
      writer.message(1, () => {
        writer.bytes(1, parsed.signatures[0] as Uint8Array)
        writer.bool(2, this.isVote)
        writer.message(3, () => writeTransaction(writer, parsed))
        writer.message(4, () => writeMeta(writer, meta))
        writer.uint(5, index)
      })
      writer.uint(2, slot)
      writeBankId(3, this.#bankId)
    })
    writer.raw(this.#createdAt)
    return writer.take()
  }

  #encodeStatus(): Uint8Array {
    writer.message(10, () => {
      writer.uint(1, this.record.slot)
      writer.bytes(2, decodeBase58(this.record.signature))
      writer.bool(3, this.isVote)
      writer.uint(4, this.record.index)
      writeError(writer, 5, this.record.meta.err)
      writeBankId(6, this.#bankId)
    })
    writer.raw(this.#createdAt)
    return writer.take()
  }
}
