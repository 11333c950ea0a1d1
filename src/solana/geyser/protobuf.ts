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
      /** The only mistake is fields that the schema does not have. */
      readonly isUnknownField: boolean
    }

/** Parses a message from protobuf's JSON format. */
export function readMessageJson<Schema extends DescMessage>(schema: Schema, text: string): ReadJson<Schema> {
  try {
    return { ok: true, message: fromJsonString(schema, text) }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { ok: false, message, isUnknownField: isReadable(schema, text, { ignoreUnknownFields: true }) }
  }
}

function isReadable(schema: DescMessage, text: string, options: { readonly ignoreUnknownFields: boolean }): boolean {
  try {
    fromJsonString(schema, text, options)
    return true
  } catch {
    return false
  }
}

export function encodeMessage<Schema extends DescMessage>(schema: Schema, init: MessageInitShape<Schema>): Uint8Array {
  return toBinary(schema, create(schema, init))
}
