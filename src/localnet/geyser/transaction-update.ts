import { encodeBase58 } from '../../solana/base58.ts'
import { type ParsedTransaction, parseTransaction } from '../../solana/transaction.ts'
import { VOTE_PROGRAM } from '../addresses.ts'
import type { TransactionRecord } from '../model.ts'
import { writeError, writeMeta, writeTransaction } from './encode-transaction.ts'
import { infoOf, writer } from './scratch.ts'

export class TransactionUpdate {
  readonly kind = 'transaction'
  readonly record: TransactionRecord
  readonly parsed: ParsedTransaction
  readonly isVote: boolean
  readonly #createdAt: Uint8Array
  #keys: ReadonlySet<string> | undefined
  #body: Uint8Array | undefined
  #statusBody: Uint8Array | undefined

  constructor(record: TransactionRecord, createdAt: Uint8Array) {
    const parse = parseTransaction(record.wire)
    if (!parse.ok) throw new Error(`the ledger holds a transaction that cannot be parsed: ${parse.reason}`)
    this.record = record
    this.parsed = parse.transaction
    this.isVote = isSimpleVote(parse.transaction)
    this.#createdAt = createdAt
  }

  /** Every address the transaction names, those loaded from lookup tables included. */
  get keys(): ReadonlySet<string> {
    const { writable, readonly } = this.record.meta.loadedAddresses
    return (this.#keys ??= new Set([...this.parsed.staticKeys.map(encodeBase58), ...writable, ...readonly]))
  }

  body(): Uint8Array {
    return (this.#body ??= this.#encode())
  }

  statusBody(): Uint8Array {
    return (this.#statusBody ??= this.#encodeStatus())
  }

  /** The message SubscribeUpdateTransactionInfo alone, for blocks. */
  info(): Uint8Array {
    return infoOf(this.body())
  }

  #encode(): Uint8Array {
    const { meta, index, slot } = this.record
    writer.message(4, () => {
      writer.message(1, () => {
        writer.bytes(1, this.parsed.signatures[0] as Uint8Array)
        writer.bool(2, this.isVote)
        writer.message(3, () => writeTransaction(writer, this.parsed))
        writer.message(4, () => writeMeta(writer, meta))
        writer.uint(5, index)
      })
      writer.uint(2, slot)
    })
    writer.raw(this.#createdAt)
    return writer.take()
  }

  #encodeStatus(): Uint8Array {
    writer.message(10, () => {
      writer.uint(1, this.record.slot)
      writer.bytes(2, this.parsed.signatures[0] as Uint8Array)
      writer.bool(3, this.isVote)
      writer.uint(4, this.record.index)
      writeError(writer, 5, this.record.meta.err)
    })
    writer.raw(this.#createdAt)
    return writer.take()
  }
}

/** As a validator tells votes: a legacy transaction of one instruction, of the vote program, with at most two signatures. */
function isSimpleVote(transaction: ParsedTransaction): boolean {
  const [instruction] = transaction.instructions
  if (transaction.version !== 'legacy' || !instruction) return false
  if (transaction.instructions.length !== 1 || transaction.signatures.length > 2) return false
  const programId = transaction.staticKeys[instruction.programIdIndex]
  return programId !== undefined && encodeBase58(programId) === VOTE_PROGRAM
}
