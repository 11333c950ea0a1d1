import type { ValueType } from '../value-type.ts'
import { timeUnit } from '../widen.ts'
import { type FlatValue, i16, i32, table, text, u8, vector } from './flatbuffer.ts'

/** Ids of the union Type in Schema.fbs. */
const TYPE = {
  int: 2,
  float: 3,
  utf8: 5,
  bool: 6,
  decimal: 7,
  date: 8,
  timestamp: 10,
  list: 12,
  struct: 13,
  fixedBinary: 15,
  map: 17,
}
/** Digits after the second of the units SECOND, MILLISECOND, MICROSECOND and NANOSECOND. */
export const ARROW_TIMES: readonly number[] = [0, 3, 6, 9]
const NO_FIELDS = table()

/** A Field of Schema.fbs: name, nullable, type, dictionary, children. */
export function arrowField(name: string, type: ValueType): FlatValue {
  const [id, description] = arrowType(type)
  const children = childFields(type)
  return table(text(name), u8(type.isNullable ? 1 : 0), u8(id), description, undefined, vector(children))
}

function childFields(type: ValueType): readonly FlatValue[] {
  switch (type.kind) {
    case 'list':
      return [arrowField('item', type.items)]
    case 'map': {
      const entries = [arrowField('key', type.key), arrowField('value', type.value)]
      return [table(text('entries'), u8(0), u8(TYPE.struct), NO_FIELDS, undefined, vector(entries))]
    }
    case 'tuple':
      return type.fields.map(({ name, type: field }, at) => arrowField(name ?? String(at + 1), field))
    default:
      return []
  }
}

function arrowType(type: ValueType): readonly [id: number, description: FlatValue] {
  switch (type.kind) {
    case 'int':
      // As ClickHouse writes 128-bit numbers; Arrow has no type for them.
      if (type.width === 16) return [TYPE.fixedBinary, table(i32(16))]
      return [TYPE.int, table(i32(type.width * 8), u8(type.isSigned ? 1 : 0))]
    case 'float':
      return [TYPE.float, table(i16(type.width === 4 ? 1 : 2))]
    case 'bool':
      return [TYPE.bool, NO_FIELDS]
    case 'decimal':
      return [TYPE.decimal, table(i32(type.digits), i32(type.scale), i32(128))]
    case 'date':
      return [TYPE.date, table(i16(0))]
    case 'time':
      return [TYPE.timestamp, table(i16(timeUnit(type.scale, ARROW_TIMES).unit), text(type.zone ?? 'UTC'))]
    case 'uuid':
      return [TYPE.fixedBinary, table(i32(16))]
    case 'list':
      return [TYPE.list, NO_FIELDS]
    case 'map':
      return [TYPE.map, table(u8(0))]
    case 'tuple':
      return [TYPE.struct, NO_FIELDS]
    default:
      return [TYPE.utf8, NO_FIELDS]
  }
}
