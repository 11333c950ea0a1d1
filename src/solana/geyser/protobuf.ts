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
 * Decodes a message; undefined when the bytes are invalid. Map entries without a value, as Rust clients send
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

export type ReadJson<Schema extends DescMessage> =
  | { readonly ok: true; readonly message: MessageShape<Schema> }
  | {
      readonly ok: false
      /** The mistake, as one sentence. */
      readonly message: string
      /** The message without the fields that the schema does not have, if they are the only mistake. */
      readonly withoutUnknown: MessageShape<Schema> | undefined
    }

/** Parses a message from protobuf's JSON format. */
export function readMessageJson<Schema extends DescMessage>(schema: Schema, text: string): ReadJson<Schema> {
  try {
    return { ok: true, message: fromJsonString(schema, text) }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { ok: false, message, withoutUnknown: readKnownFields(schema, text) }
  }
}

function readKnownFields<Schema extends DescMessage>(schema: Schema, text: string): MessageShape<Schema> | undefined {
  try {
    return fromJsonString(schema, text, { ignoreUnknownFields: true })
  } catch {
    return undefined
  }
}

export function encodeMessage<Schema extends DescMessage>(schema: Schema, init: MessageInitShape<Schema>): Uint8Array {
  return toBinary(schema, create(schema, init))
}
