import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { WIRE_BYTES, WIRE_FIXED32, WIRE_FIXED64, WIRE_VARINT, WireReader } from './wire-reader.ts'

/** Why decoders could disagree about a message. */
export type ScanProblem = {
  readonly rule: 'readable' | 'known-fields' | 'single-fields' | 'fields-max' | 'entries-max'
  /** Name of the message that holds the field, without its package. */
  readonly message: string
  readonly field: number
  /** Key of the map entry that holds the message. */
  readonly entry?: string
}

export type Scan = {
  /** Fields scanned, at all levels. */
  readonly fields: number
  /** Bytes of the unknown fields of type bytes, at all levels. */
  readonly unknownBytes: number
  readonly problem: ScanProblem | undefined
}

export type ScanLimits = {
  /** Maximum number of fields at all levels. */
  readonly fieldsMax: number
  /** Maximum number of entries in all maps together. */
  readonly entriesMax: number
  /** Passes unknown fields, which decoders keep or skip, and counts their bytes. */
  readonly allowsUnknown?: boolean
}

/**
 * Scans an encoded message without decoding it, in one pass and in linear time. Every decoder reads an accepted message alike:
 * each field is known (or `allowsUnknown` is set) and has its wire type, no singular field and no map key is repeated, strings are UTF-8, varints have
 * the shortest form, and there are no groups. The schema limits the nesting.
 */
export function scanMessage(schema: DescMessage, bytes: Uint8Array, limits: ScanLimits): Scan {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const on: Walk = { ...limits, bytes: buffer, fields: 0, entries: 0, unknownBytes: 0 }
  const problem = scan(new WireReader(bytes), shapeOf(schema), on)
  return { fields: on.fields, unknownBytes: on.unknownBytes, problem }
}

type Walk = ScanLimits & { readonly bytes: Buffer; fields: number; entries: number; unknownBytes: number }

function scan(reader: WireReader, { name, fields }: Shape, on: Walk): ScanProblem | undefined {
  const found = (rule: ScanProblem['rule']) => ({ rule, message: name, field: reader.field })
  let seen = 0
  let keys: Set<string> | undefined
  while (reader.next()) {
    on.fields += 1
    if (on.fields > on.fieldsMax) return found('fields-max')
    const field = fields.get(reader.field)
    if (field === undefined) {
      if (on.allowsUnknown !== true) return found('known-fields')
      if (reader.wireType === WIRE_BYTES) on.unknownBytes += reader.to - reader.from
      continue
    }
    if (field.wireType !== reader.wireType) return found('readable')
    if ((seen & field.once) !== 0) return found('single-fields')
    seen |= field.once
    if (field.isMap && ++on.entries > on.entriesMax) return found('entries-max')
    if (field.isText && !isText(on.bytes, reader)) return found('readable')
    if (field.message === undefined) continue
    const problem = scan(reader.inside(), field.message, on)
    if (problem !== undefined) return field.isMap ? { ...problem, entry: keyOf(reader.inside(), on.bytes) } : problem
    if (!field.isMap) continue
    const key = `${reader.field} ${keyOf(reader.inside(), on.bytes)}`
    keys ??= new Set()
    if (keys.has(key)) return found('single-fields')
    keys.add(key)
  }
  return reader.isBroken ? found('readable') : undefined
}

function isText(bytes: Uint8Array, { from, to }: WireReader): boolean {
  for (let at = from; at < to; at++) if ((bytes[at] as number) >= 0x80) return isUtf8(bytes.subarray(from, to))
  return true
}

const KEY = 1
const VALUE = 2

/** The key of a map entry; a missing key is the empty string. */
function keyOf(entry: WireReader, bytes: Buffer): string {
  while (entry.next()) if (entry.field === KEY) return bytes.toString('utf8', entry.from, entry.to)
  return ''
}

type Shape = { readonly name: string; readonly fields: ReadonlyMap<number, FieldShape> }

type FieldShape = {
  readonly wireType: number
  /** The bit of a singular field, shared within a oneof; 0 for a repeated field. */
  readonly once: number
  readonly isText: boolean
  readonly isMap: boolean
  readonly message: Shape | undefined
}

const shapes = new WeakMap<DescMessage, Shape>()

function shapeOf(schema: DescMessage): Shape {
  const known = shapes.get(schema)
  if (known !== undefined) return known
  const fields = new Map<number, FieldShape>()
  const shape = { name: schema.name, fields }
  shapes.set(schema, shape)
  const single = [...new Set(schema.fields.map((field) => field.oneof ?? field))]
  // Each has one bit of a 32-bit integer.
  assert.ok(single.length < 31, `${schema.name} has more fields than are scanned`)
  for (const field of schema.fields)
    fields.set(field.number, fieldShape(field, 1 << single.indexOf(field.oneof ?? field)))
  return shape
}

function fieldShape(field: DescField, bit: number): FieldShape {
  const many = { wireType: WIRE_BYTES, once: 0, isText: false, isMap: false, message: undefined }
  const one = { ...many, once: bit }
  switch (field.fieldKind) {
    case 'map': {
      assert.ok(field.mapKey === ScalarType.STRING && field.mapKind === 'message', `${field.name} is not scanned`)
      const key = { ...many, once: 1, isText: true }
      const value = { ...many, once: 2, message: shapeOf(field.message) }
      const entry = {
        name: `${field.parent.name}.${field.name}`,
        fields: new Map<number, FieldShape>([
          [KEY, key],
          [VALUE, value],
        ]),
      }
      return { ...many, isMap: true, message: entry }
    }
    case 'list':
      if (field.listKind === 'message') return { ...many, message: shapeOf(field.message) }
      // Lists of numbers may be packed or not; no request has any.
      assert.ok(field.listKind === 'scalar' && wireTypeOf(field.scalar) === WIRE_BYTES, `${field.name} is not scanned`)
      return { ...many, isText: field.scalar === ScalarType.STRING }
    case 'message':
      return { ...one, message: shapeOf(field.message) }
    case 'enum':
      return { ...one, wireType: WIRE_VARINT }
    case 'scalar':
      return { ...one, wireType: wireTypeOf(field.scalar), isText: field.scalar === ScalarType.STRING }
  }
}

function wireTypeOf(scalar: ScalarType): number {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WIRE_BYTES
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WIRE_FIXED64
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WIRE_FIXED32
    default:
      return WIRE_VARINT
  }
}
