import type { DuckType } from '../../platform/db/duckdb-column.ts'
import { QueryError } from '../query/error.ts'
import type { ByteWriter } from './byte-writer.ts'
import type { ValueType } from './value-type.ts'

/** Writes value `at` of the engine's bytes in ClickHouse's layout. */
type Convert = (source: Buffer, at: number, out: ByteWriter) => void

type EngineNumber = { readonly width: number; readonly isSigned: boolean; readonly scale: number }

/** Decimal digits after the second of the engine's times. */
const TIME_SCALES: Readonly<Record<string, number>> = {
  TIMESTAMP_S: 0,
  TIMESTAMP_MS: 3,
  TIMESTAMP: 6,
  'TIMESTAMP WITH TIME ZONE': 6,
  TIMESTAMP_NS: 9,
}
const FLOATS: Readonly<Record<string, number>> = { FLOAT: 4, DOUBLE: 8 }

/**
 * How values of an engine's type of fixed width become those of a ClickHouse type: `copy` when both have the same layout, otherwise a function.
 * Undefined when the one cannot be written as the other.
 */
export function fixedLayout(engine: DuckType, type: ValueType): 'copy' | Convert | undefined {
  if (engine.kind !== 'fixed' && engine.kind !== 'decimal') return undefined
  const { name } = engine
  if (name === 'UUID') return type.kind === 'uuid' ? convertUuid : undefined
  if (name === 'BOOLEAN') return type.kind === 'bool' || (type.kind === 'int' && type.width === 1) ? 'copy' : undefined
  if (FLOATS[name] !== undefined) {
    if (type.kind !== 'float') return undefined
    return FLOATS[name] === type.width ? 'copy' : convertFloat(FLOATS[name], type.width)
  }
  const from = engineNumber(engine)
  const to = targetNumber(type)
  if (from === undefined || to === undefined || !isSameKind(engine, type)) return undefined
  const isSame = from.width === to.width && from.scale === to.scale && from.isSigned === to.isSigned
  if (isSame) return 'copy'
  return convertNumber(from, to, type.kind === 'date' || type.kind === 'time' ? 'nearest' : 'refused')
}

function isSameKind(engine: DuckType, { kind }: ValueType): boolean {
  if (engine.kind === 'decimal') return kind === 'decimal'
  if (engine.name === 'DATE') return kind === 'date'
  return TIME_SCALES[engine.name] === undefined ? kind === 'int' || kind === 'bool' : kind === 'time'
}

function engineNumber(engine: Extract<DuckType, { kind: 'fixed' | 'decimal' }>): EngineNumber | undefined {
  if (engine.kind === 'decimal') return { width: engine.width, isSigned: true, scale: engine.scale }
  const { name, width } = engine
  return { width, isSigned: !/^U.*INT/.test(name), scale: TIME_SCALES[name] ?? 0 }
}

function targetNumber(type: ValueType): EngineNumber | undefined {
  switch (type.kind) {
    case 'int':
      return { width: type.width, isSigned: type.isSigned, scale: 0 }
    case 'bool':
      return { width: 1, isSigned: false, scale: 0 }
    case 'date':
      return { width: type.width, isSigned: type.width === 4, scale: 0 }
    case 'time':
      return { width: type.width, isSigned: type.width === 8, scale: type.scale }
    case 'decimal':
      return { width: type.width, isSigned: true, scale: type.scale }
    default:
      return undefined
  }
}

/** Reads a number of any width; used where the layouts differ, so speed does not matter. */
function readNumber(source: Buffer, at: number, { width, isSigned }: Omit<EngineNumber, 'scale'>): bigint {
  const offset = at * width
  if (width === 16) {
    const high = isSigned ? source.readBigInt64LE(offset + 8) : source.readBigUInt64LE(offset + 8)
    return (high << 64n) | source.readBigUInt64LE(offset)
  }
  if (width === 8) return isSigned ? source.readBigInt64LE(offset) : source.readBigUInt64LE(offset)
  return BigInt(isSigned ? source.readIntLE(offset, width) : source.readUIntLE(offset, width))
}

/** What becomes of a value outside of the range: ClickHouse writes the nearest date or time. */
type OutOfRange = 'nearest' | 'refused'

function inRange(value: bigint, { width, isSigned }: EngineNumber, outOfRange: OutOfRange): bigint {
  const bits = BigInt(width * 8)
  const [min, max] = isSigned ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] : [0n, (1n << bits) - 1n]
  if (value >= min && value <= max) return value
  if (outOfRange === 'nearest') return value < min ? min : max
  throw new QueryError('VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE', 'A value is out of the range of its type.')
}

function writeNumber(out: ByteWriter, value: bigint, { width }: EngineNumber): void {
  const stored = BigInt.asUintN(width * 8, value)
  if (width === 16) {
    out.u64(stored & 0xffff_ffff_ffff_ffffn)
    out.u64(stored >> 64n)
  } else if (width === 8) out.u64(stored)
  else for (let byte = 0; byte < width; byte++) out.u8(Number((stored >> BigInt(8 * byte)) & 0xffn))
}

function convertNumber(from: EngineNumber, to: EngineNumber, outOfRange: OutOfRange): Convert {
  const up = 10n ** BigInt(Math.max(0, to.scale - from.scale))
  const down = 10n ** BigInt(Math.max(0, from.scale - to.scale))
  return (source, at, out) => {
    const scaled = readNumber(source, at, from) * up
    // Rounded down, before 1970 too, as ClickHouse does.
    const rest = scaled % down
    writeNumber(out, inRange((scaled - rest) / down - (rest < 0n ? 1n : 0n), to, outOfRange), to)
  }
}

function convertFloat(from: number, to: number): Convert {
  const scratch = Buffer.alloc(8)
  return (source, at, out) => {
    const value = from === 4 ? source.readFloatLE(at * 4) : source.readDoubleLE(at * 8)
    if (to === 4) scratch.writeFloatLE(value)
    else scratch.writeDoubleLE(value)
    out.bytes(scratch.subarray(0, to))
  }
}

/** The engine stores a UUID as a signed 128-bit number with its highest bit inverted; ClickHouse as two 64-bit numbers, the higher one first. */
function convertUuid(source: Buffer, at: number, out: ByteWriter): void {
  const low = source.readBigUInt64LE(at * 16)
  const high = source.readBigUInt64LE(at * 16 + 8)
  out.u64(high ^ (1n << 63n))
  out.u64(low)
}
