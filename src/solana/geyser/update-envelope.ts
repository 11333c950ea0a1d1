import { Buffer } from 'node:buffer'
import { ProtobufWriter } from './protobuf-writer.ts'

/** The field `filters` of every update: the names of the filters that selected it. */
const FILTERS_FIELD = 1

const names = new ProtobufWriter()

/** The name of a filter as an entry of the field `filters`. It is a copy, because it is kept as long as its filter. */
export function encodeFilterName(name: string): Uint8Array {
  names.presentText(FILTERS_FIELD, name)
  return Buffer.from(names.take())
}

/** The field `created_at`, a google.protobuf.Timestamp, under the number that it has in this kind of update. */
export function writeCreatedAt(writer: ProtobufWriter, field: number, unixMs: number): void {
  writer.message(field, () => {
    writer.uint(1, Math.floor(unixMs / 1000))
    writer.uint(2, Math.floor((unixMs % 1000) * 1_000_000))
  })
}
