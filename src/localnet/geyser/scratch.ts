import { ProtobufWriter } from '../../solana/geyser/protobuf-writer.ts'
import { writeCreatedAt } from '../../solana/geyser/update-envelope.ts'
import type { BankId } from '../chain/model.ts'

/** The buffer that all updates are encoded in, one after the other. Empty whenever no encoder is running. */
export const writer = new ProtobufWriter()

/** The field bank_id, which banks of the tower do not have. */
export function writeBankId(field: number, bankId: BankId): void {
  if (bankId !== undefined) writer.presentUint(field, bankId)
}

const CREATED_AT_FIELD = 11

/** The field created_at, which follows every oneof. */
export function encodeCreatedAt(unixMs: number): Uint8Array {
  writeCreatedAt(writer, CREATED_AT_FIELD, unixMs)
  return writer.take()
}

/** The inner message of an account or transaction update; the body starts with tag, length, tag, length. */
export function infoOf(body: Uint8Array): Uint8Array {
  let at = 1
  while ((body[at] as number) > 127) at++
  at += 2
  let length = 0
  for (let shift = 0; ; shift += 7) {
    const byte = body[at++] as number
    length += (byte & 127) * 2 ** shift
    if (byte < 128) break
  }
  return body.subarray(at, at + length)
}
