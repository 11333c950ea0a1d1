import type { ChainTokenBalance } from '../../solana/chain-block.ts'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import type { ProtobufWriter } from '../../solana/geyser/protobuf-writer.ts'
import { encodeTransactionError } from '../../solana/transaction/error.ts'
import type { TransactionError, TransactionMeta } from '../chain/model.ts'
import { decimalText } from '../rpc/parsed/token-amount.ts'

// Field numbers: proto/solana-storage.proto.

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
