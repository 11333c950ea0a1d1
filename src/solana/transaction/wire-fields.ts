import { readCompactU16 } from './compact-u16.ts'

/** Where the fields of a transaction of the formats legacy and v0 begin, and how many there are. One object serves many transactions. */
export type WireFields = {
  isVersioned: boolean
  signatures: number
  signaturesAt: number
  headerAt: number
  keys: number
  keysAt: number
  blockhashAt: number
  instructions: number
  instructionsAt: number
}

const SIGNATURE_BYTES = 64
const KEY_BYTES = 32
const HEADER_BYTES = 3
const V1 = 0x81
const V0 = 0x80

export function createWireFields(): WireFields {
  return {
    isVersioned: false,
    signatures: 0,
    signaturesAt: 0,
    headerAt: 0,
    keys: 0,
    keysAt: 0,
    blockhashAt: 0,
    instructions: 0,
    instructionsAt: 0,
  }
}

/** Whether `locateFields` finds the fields of this transaction: those of v1 are in another order. */
export function hasWireFields(wire: Uint8Array): boolean {
  return wire[0] !== V1
}

/** Fills `fields`, without an object for each field as `parseTransaction` makes them. The transaction must be one that `parseTransaction` accepts. */
export function locateFields(wire: Uint8Array, fields: WireFields): void {
  fields.signatures = wire[0] as number
  fields.signaturesAt = 1
  let at = 1 + fields.signatures * SIGNATURE_BYTES
  fields.isVersioned = wire[at] === V0
  if (fields.isVersioned) at += 1
  fields.headerAt = at
  const keys = readCompactU16(wire, at + HEADER_BYTES)
  fields.keys = keys >> 2
  fields.keysAt = at + HEADER_BYTES + (keys & 3)
  fields.blockhashAt = fields.keysAt + fields.keys * KEY_BYTES
  const instructions = readCompactU16(wire, fields.blockhashAt + KEY_BYTES)
  fields.instructions = instructions >> 2
  fields.instructionsAt = fields.blockhashAt + KEY_BYTES + (instructions & 3)
}
