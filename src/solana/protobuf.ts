import {
  create,
  type DescMessage,
  fromBinary,
  fromJsonString,
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

/** The message a text in protobuf's JSON form stands for, or what is wrong with it in a sentence. */
export function readMessageJson<Schema extends DescMessage>(
  schema: Schema,
  text: string,
): { readonly ok: true; readonly message: MessageShape<Schema> } | { readonly ok: false; readonly says: string } {
  try {
    return { ok: true, message: fromJsonString(schema, text) }
  } catch (error) {
    return { ok: false, says: error instanceof Error ? error.message : String(error) }
  }
}

export function encodeMessage<Schema extends DescMessage>(schema: Schema, init: MessageInitShape<Schema>): Uint8Array {
  return toBinary(schema, create(schema, init))
}
