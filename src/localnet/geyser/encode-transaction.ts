import type { ChainTokenBalance } from '../../solana/chain-block.ts'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import type { ProtobufWriter } from '../../solana/geyser/protobuf-writer.ts'
import { encodeTransactionError } from '../../solana/transaction/error.ts'
import type { ParsedTransaction } from '../../solana/transaction/transaction.ts'
import type { TransactionError, TransactionMeta } from '../chain/model.ts'
import { decimalText } from '../rpc/parsed/token-amount.ts'

// Field numbers: proto/solana-storage.proto.

export function writeTransaction(writer: ProtobufWriter, transaction: ParsedTransaction): void {
  for (const signature of transaction.signatures) writer.presentBytes(1, signature)
  writer.message(2, () => writeMessage(writer, transaction))
}

function writeMessage(writer: ProtobufWriter, transaction: ParsedTransaction): void {
  const { header, config } = transaction
  writer.message(1, () => {
    writer.uint(1, header.numRequiredSignatures)
    writer.uint(2, header.numReadonlySigned)
    writer.uint(3, header.numReadonlyUnsigned)
  })
  for (const key of transaction.staticKeys) writer.presentBytes(2, key)
  writer.bytes(3, transaction.recentBlockhash)
  for (const { programIdIndex, accounts, data } of transaction.instructions) {
    writer.message(4, () => {
      writer.uint(1, programIdIndex)
      writer.bytes(2, accounts)
      writer.bytes(3, data)
    })
  }
  writer.bool(5, transaction.version !== 'legacy')
  for (const { accountKey, writableIndexes, readonlyIndexes } of transaction.addressTableLookups) {
    writer.message(6, () => {
      writer.bytes(1, accountKey)
      writer.bytes(2, writableIndexes)
      writer.bytes(3, readonlyIndexes)
    })
  }
  if (!config) return
  writer.message(7, () => {
    if (config.priorityFeeLamports !== null) writer.presentUint(1, config.priorityFeeLamports)
    if (config.computeUnitLimit !== null) writer.presentUint(2, config.computeUnitLimit)
    if (config.loadedAccountsDataSizeLimit !== null) writer.presentUint(3, config.loadedAccountsDataSizeLimit)
    if (config.heapSize !== null) writer.presentUint(4, config.heapSize)
  })
}

export function writeMeta(writer: ProtobufWriter, meta: TransactionMeta): void {
  writeError(writer, 1, meta.err)
  writer.uint(2, meta.fee)
  writer.packedUints(3, meta.preBalances)
  writer.packedUints(4, meta.postBalances)
  for (const { index, instructions } of meta.innerInstructions) {
    writer.message(5, () => {
      writer.uint(1, index)
      for (const inner of instructions) {
        writer.message(2, () => {
          writer.uint(1, inner.programIdIndex)
          writer.bytes(2, inner.accounts)
          writer.bytes(3, inner.data)
          writer.presentUint(4, inner.stackHeight)
        })
      }
    })
  }
  for (const line of meta.logMessages) writer.presentText(6, line)
  for (const balance of meta.preTokenBalances) writeTokenBalance(writer, 7, balance)
  for (const balance of meta.postTokenBalances) writeTokenBalance(writer, 8, balance)
  for (const address of meta.loadedAddresses.writable) writer.presentBytes(12, decodeBase58(address))
  for (const address of meta.loadedAddresses.readonly) writer.presentBytes(13, decodeBase58(address))
  const { returnData } = meta
  if (returnData) {
    writer.message(14, () => {
      writer.bytes(1, decodeBase58(returnData.programId))
      writer.bytes(2, returnData.data)
    })
  }
  writer.bool(15, returnData === null)
  writer.presentUint(16, meta.computeUnitsConsumed)
}

/** The message TransactionError in the given field; nothing for a transaction that succeeded. */
export function writeError(writer: ProtobufWriter, field: number, error: TransactionError | null): void {
  if (error === null) return
  writer.message(field, () => writer.bytes(1, encodeTransactionError(error) ?? UNKNOWN_ERROR))
}

/** SanitizeFailure, for an engine error without a name in Solana. */
const UNKNOWN_ERROR = Uint8Array.of(14, 0, 0, 0)

function writeTokenBalance(writer: ProtobufWriter, field: number, balance: ChainTokenBalance): void {
  const { amount, decimals } = balance
  writer.message(field, () => {
    writer.uint(1, balance.accountIndex)
    writer.text(2, balance.mint)
    writer.message(3, () => {
      writer.double(1, Number(amount) / 10 ** decimals)
      writer.uint(2, decimals)
      writer.text(3, amount.toString())
      writer.text(4, decimalText(amount, decimals))
    })
    writer.text(4, balance.owner)
    writer.text(5, balance.programId)
  })
}
