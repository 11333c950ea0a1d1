import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'

/**
 * The message these bytes stand for, or undefined when they are none. Map entries without a value, as Rust clients send
 * them, are read as entries with an empty value.
 */
export function decodeMessage<Schema extends DescMessage>(
  schema: Schema,
  bytes: Uint8Array,
): MessageShape<Schema> | undefined {
  try {
    return fromBinary(schema, bytes)
  } catch {
    return undefined
  }
}

export function encodeMessage<Schema extends DescMessage>(schema: Schema, init: MessageInitShape<Schema>): Uint8Array {
  return toBinary(schema, create(schema, init))
}
