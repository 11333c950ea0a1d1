import type { ParsedTransaction } from '../transaction/types.ts'
import type { ProtobufWriter } from './protobuf-writer.ts'

// Field numbers: proto/solana-storage.proto.

/** The fields of the message Transaction. */
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
