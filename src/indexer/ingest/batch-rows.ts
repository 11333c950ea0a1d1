import { type ColumnType, TABLES, type Table, type TableName, tableOf } from '../schema.ts'
import { grown, Texts } from './texts.ts'

/** A value of a row as it is read; which kind a column takes stands in the schema. */
export type Value = string | number | bigint | boolean | readonly string[]
/** Values in the order of the table's columns. */
export type Row = readonly Value[]

/** A value as it is added: texts by their number in `Texts`. */
export type Cell = number | bigint | boolean | readonly number[]

/**
 * What blocks mean, table by table. Values lie column by column in arrays of numbers, because there are tens of thousands of rows a
 * second: a row of its own for each would cost more than writing it.
 */
export class BatchRows {
  readonly texts = new Texts()
  readonly tables = Object.fromEntries(
    TABLES.map((table) => [table.name, new TableRows(table, this.texts)]),
  ) as Readonly<Record<TableName, TableRows>>
}

export class TableRows {
  readonly columns: readonly ColumnValues[]
  readonly #texts: Texts
  #count = 0

  constructor(table: Table, texts: Texts) {
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

  /** Rows as they are read, one after another. */
  *rows(): Generator<Row> {
    for (let at = 0; at < this.#count; at++) yield this.columns.map((column) => column.valueAt(at, this.#texts))
  }
}

/** One column: numbers as the engines keep them, texts by their numbers, lists as where each ends and what is in them. */
export type ColumnValues = WideColumn | NarrowColumn | TextColumn | TextsColumn

function createColumn(type: ColumnType): ColumnValues {
  switch (type) {
    case 'u64':
    case 'i64':
      return new WideColumn(type)
    case 'text':
    case 'word':
      return new TextColumn()
    case 'texts':
    case 'words':
      return new TextsColumn()
    default:
      return new NarrowColumn(type)
  }
}

const FIRST_ROWS = 64
const WORD = 2 ** 32

/** Numbers of 64 bits. */
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
      if (this.kind === 'u64' && BigInt.asUintN(64, cell) !== cell) throw new RangeError(`${cell} is not of 64 bits`)
      this.#wide[at] = cell
    } else {
      const number = cell as number
      if (!(number >= 0 && number <= Number.MAX_SAFE_INTEGER)) throw new RangeError(`${number} is no whole number`)
      this.#words[at * 2] = number
      this.#words[at * 2 + 1] = Math.floor(number / WORD)
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

type NarrowKind = 'u32' | 'u16' | 'u8' | 'i16' | 'bool' | 'time'
const RANGES: Readonly<Record<NarrowKind, readonly [least: number, most: number]>> = {
  u32: [0, WORD - 1],
  u16: [0, 0xffff],
  u8: [0, 0xff],
  i16: [-0x8000, 0x7fff],
  bool: [0, 1],
  time: [0, Number.MAX_SAFE_INTEGER],
}

/** Numbers that a double holds. */
class NarrowColumn {
  readonly kind: NarrowKind
  readonly #least: number
  readonly #most: number
  #numbers = new Float64Array(FIRST_ROWS)
  #count = 0

  constructor(kind: NarrowKind) {
    this.kind = kind
    ;[this.#least, this.#most] = RANGES[kind]
  }

  add(cell: Cell): void {
    const number = Number(cell)
    if (!(number >= this.#least && number <= this.#most)) throw new RangeError(`${number} is no ${this.kind}`)
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

class TextColumn {
  readonly kind = 'text'
  #numbers = new Uint32Array(FIRST_ROWS)
  #count = 0

  add(cell: Cell): void {
    if (this.#count === this.#numbers.length) this.#numbers = grown(this.#numbers, Uint32Array)
    this.#numbers[this.#count++] = cell as number
  }

  valueAt(at: number, texts: Texts): Value {
    return texts.textOf(this.#numbers[at] as number)
  }

  values(): Uint32Array {
    return this.#numbers.subarray(0, this.#count)
  }
}

class TextsColumn {
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

  valueAt(at: number, texts: Texts): Value {
    const from = at === 0 ? 0 : (this.#ends[at - 1] as number)
    return Array.from(this.#items.subarray(from, this.#ends[at]), (number) => texts.textOf(number))
  }

  values(): { readonly ends: Uint32Array; readonly items: Uint32Array } {
    return { ends: this.#ends.subarray(0, this.#count), items: this.#items.subarray(0, this.#itemCount) }
  }
}

/** The rows of one table in all pieces, as they are read. */
export function* rowsIn(pieces: readonly BatchRows[], table: TableName): Generator<Row> {
  for (const { tables } of pieces) yield* tables[table].rows()
}

/** The place of a column in the rows of a table. */
export function columnAt(table: TableName, name: string): number {
  return tableOf(table).columns.findIndex((column) => column.name === name)
}
