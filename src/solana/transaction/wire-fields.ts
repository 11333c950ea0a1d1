import { readCompactU16 } from './compact-u16.ts'

/** Where the fields of a transaction begin, and how many there are, for each of the three formats. One object serves many transactions. */
export type WireFields = {
  /** v0 or v1. */
  isVersioned: boolean
  isV1: boolean
  signatures: number
  signaturesAt: number
  headerAt: number
  keys: number
  keysAt: number
  keysEnd: number
  blockhashAt: number
  instructions: number
  /** v1: of the headers of all instructions; their payloads follow. */
  instructionsAt: number
  /** v1: the config values that are present, each a bit, and where they begin. */
  configMask: number
  configAt: number
}

const SIGNATURE_BYTES = 64
const KEY_BYTES = 32
const HEADER_BYTES = 3
const V1 = 0x81
/** SIMD-0385. All known bits of the config mask are in its first byte. */
const V1_AT = { header: 1, configMask: 4, blockhash: 8, instructions: 40, keys: 41, firstKey: 42 } as const
const CONFIG_VALUE_BYTES = 4
const V0 = 0x80

export function createWireFields(): WireFields {
  return {
    isVersioned: false,
    isV1: false,
    signatures: 0,
    signaturesAt: 0,
    headerAt: 0,
    keys: 0,
    keysAt: 0,
    keysEnd: 0,
    blockhashAt: 0,
    instructions: 0,
    instructionsAt: 0,
    configMask: 0,
    configAt: 0,
  }
}

/** Fills `fields`, without an object for each field as `parseTransaction` makes them. The transaction must be one that `parseTransaction` accepts. */
export function locateFields(wire: Uint8Array, fields: WireFields): void {
  fields.isV1 = wire[0] === V1
  if (fields.isV1) return locateV1(wire, fields)
  fields.signatures = wire[0] as number
  fields.signaturesAt = 1
  let at = 1 + fields.signatures * SIGNATURE_BYTES
  fields.isVersioned = wire[at] === V0
  if (fields.isVersioned) at += 1
  fields.headerAt = at
  const keys = readCompactU16(wire, at + HEADER_BYTES)
  fields.keys = keys >> 2
  fields.keysAt = at + HEADER_BYTES + (keys & 3)
  fields.keysEnd = fields.keysAt + fields.keys * KEY_BYTES
  fields.blockhashAt = fields.keysEnd
  const instructions = readCompactU16(wire, fields.blockhashAt + KEY_BYTES)
  fields.instructions = instructions >> 2
  fields.instructionsAt = fields.blockhashAt + KEY_BYTES + (instructions & 3)
}

function locateV1(wire: Uint8Array, fields: WireFields): void {
  fields.isVersioned = true
  fields.signatures = wire[V1_AT.header] as number
  fields.signaturesAt = wire.length - fields.signatures * SIGNATURE_BYTES
  fields.headerAt = V1_AT.header
  fields.keys = wire[V1_AT.keys] as number
  fields.keysAt = V1_AT.firstKey
  fields.keysEnd = V1_AT.firstKey + fields.keys * KEY_BYTES
  fields.blockhashAt = V1_AT.blockhash
  fields.configMask = wire[V1_AT.configMask] as number
  fields.configAt = fields.keysEnd
  fields.instructions = wire[V1_AT.instructions] as number
  let at = fields.configAt
  for (let bits = fields.configMask; bits > 0; bits >>= 1) at += (bits & 1) * CONFIG_VALUE_BYTES
  fields.instructionsAt = at
}
