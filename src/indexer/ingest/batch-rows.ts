import { type ColumnType, TABLES, type Table, type TableName, tableOf } from '../schema.ts'
import { grown, StringTable } from './string-table.ts'

/** A value of a row as it is read; the schema gives the type of each column. */
export type Value = string | number | bigint | boolean | readonly string[]
/** Values in the order of the table's columns. */
export type Row = readonly Value[]

/** A value as it is added: strings by their index in the string table. */
export type Cell = number | bigint | boolean | readonly number[]

/**
 * The rows of blocks, by table. Values are stored by column in typed arrays, because there are tens of thousands of rows a second: allocating an
 * object for each would cost more than writing it.
 */
export class BatchRows {
  readonly texts = new StringTable()
  readonly tables = Object.fromEntries(
    TABLES.map((table) => [table.name, new TableRows(table, this.texts)]),
  ) as Readonly<Record<TableName, TableRows>>
}

export class TableRows {
  readonly columns: readonly ColumnValues[]
  readonly #texts: StringTable
  #count = 0

  constructor(table: Table, texts: StringTable) {
    this.#texts = texts
    this.columns = table.columns.map(({ type }) => createColumn(type))
  }

  get count(): number {
    return this.#count
  }

  add(...cells: readonly Cell[]): void {
    const { columns } = this
    for (let at = 0; at < columns.length; at++) (columns[at] as ColumnValues).add(cells[at] as Cell)
    this.#count++
  }

  /** The rows in order, each as an array of values. */
  *rows(): Generator<Row> {
    for (let at = 0; at < this.#count; at++) yield this.columns.map((column) => column.valueAt(at, this.#texts))
  }
}

/** One column: numbers as the engines store them, strings by index, lists as the end of each and all items. */
export type ColumnValues = WideColumn | NarrowColumn | StringColumn | StringsColumn

function createColumn(type: ColumnType): ColumnValues {
  switch (type) {
    case 'u64':
    case 'i64':
      return new WideColumn(type)
    case 'text':
    case 'word':
      return new StringColumn()
    case 'texts':
    case 'words':
      return new StringsColumn()
    default:
      return new NarrowColumn(type)
  }
}

const FIRST_ROWS = 64
const TWO_POW_32 = 2 ** 32

/** 64-bit integers. */
class WideColumn {
  readonly kind: 'u64' | 'i64'
  #words = new Uint32Array(FIRST_ROWS * 2)
  #wide = new BigUint64Array(this.#words.buffer)
  #count = 0

  constructor(kind: 'u64' | 'i64') {
    this.kind = kind
  }

  add(cell: Cell): void {
    const at = this.#count++
    if (at === this.#wide.length) {
      this.#words = grown(this.#words, Uint32Array)
      this.#wide = new BigUint64Array(this.#words.buffer)
    }
    if (typeof cell === 'bigint') {
      if ((this.kind === 'u64' ? BigInt.asUintN(64, cell) : BigInt.asIntN(64, cell)) !== cell)
        throw new RangeError(`${cell} does not fit into 64 bits`)
      this.#wide[at] = cell
    } else {
      const number = cell as number
      if (!(number >= 0 && number <= Number.MAX_SAFE_INTEGER))
        throw new RangeError(`${number} is not a safe non-negative integer`)
      this.#words[at * 2] = number
      this.#words[at * 2 + 1] = Math.floor(number / TWO_POW_32)
    }
  }

  valueAt(at: number): Value {
    const value = this.#wide[at] as bigint
    return this.kind === 'i64' ? BigInt.asIntN(64, value) : value
  }

  values(): BigUint64Array {
    return this.#wide.subarray(0, this.#count)
  }
}

/** The last second of ClickHouse's DateTime, in 2106. */
export const TIME_MAX = TWO_POW_32 - 1

type NarrowKind = 'u32' | 'u16' | 'u8' | 'i16' | 'bool' | 'time'
const RANGES: Readonly<Record<NarrowKind, readonly [min: number, max: number]>> = {
  u32: [0, TWO_POW_32 - 1],
  u16: [0, 0xffff],
  u8: [0, 0xff],
  i16: [-0x8000, 0x7fff],
  bool: [0, 1],
  time: [0, TIME_MAX],
}

/** Numbers that a double represents exactly. */
class NarrowColumn {
  readonly kind: NarrowKind
  readonly #min: number
  readonly #max: number
  #numbers = new Float64Array(FIRST_ROWS)
  #count = 0

  constructor(kind: NarrowKind) {
    this.kind = kind
    ;[this.#min, this.#max] = RANGES[kind]
  }

  add(cell: Cell): void {
    const number = Number(cell)
    if (!(number >= this.#min && number <= this.#max)) throw new RangeError(`${number} is not a ${this.kind}`)
    if (this.#count === this.#numbers.length) this.#numbers = grown(this.#numbers, Float64Array)
    this.#numbers[this.#count++] = number
  }

  valueAt(at: number): Value {
    const number = this.#numbers[at] as number
    return this.kind === 'bool' ? number === 1 : number
  }

  values(): Float64Array {
    return this.#numbers.subarray(0, this.#count)
  }
}

class StringColumn {
  readonly kind = 'text'
  #numbers = new Uint32Array(FIRST_ROWS)
  #count = 0

  add(cell: Cell): void {
    if (this.#count === this.#numbers.length) this.#numbers = grown(this.#numbers, Uint32Array)
    this.#numbers[this.#count++] = cell as number
  }

  valueAt(at: number, texts: StringTable): Value {
    return texts.get(this.#numbers[at] as number)
  }

  values(): Uint32Array {
    return this.#numbers.subarray(0, this.#count)
  }
}

class StringsColumn {
  readonly kind = 'texts'
  #ends = new Uint32Array(FIRST_ROWS)
  #items = new Uint32Array(FIRST_ROWS)
  #count = 0
  #itemCount = 0

  add(cell: Cell): void {
    for (const number of cell as readonly number[]) {
      if (this.#itemCount === this.#items.length) this.#items = grown(this.#items, Uint32Array)
      this.#items[this.#itemCount++] = number
    }
    if (this.#count === this.#ends.length) this.#ends = grown(this.#ends, Uint32Array)
    this.#ends[this.#count++] = this.#itemCount
  }

  valueAt(at: number, texts: StringTable): Value {
    const from = at === 0 ? 0 : (this.#ends[at - 1] as number)
    return Array.from(this.#items.subarray(from, this.#ends[at]), (number) => texts.get(number))
  }

  values(): { readonly ends: Uint32Array; readonly items: Uint32Array } {
    return { ends: this.#ends.subarray(0, this.#count), items: this.#items.subarray(0, this.#itemCount) }
  }
}

/** The rows of one table in all pieces. */
export function* rowsIn(pieces: readonly BatchRows[], table: TableName): Generator<Row> {
  for (const { tables } of pieces) yield* tables[table].rows()
}

/** The index of a column in the rows of a table. */
export function columnAt(table: TableName, name: string): number {
  return tableOf(table).columns.findIndex((column) => column.name === name)
}
