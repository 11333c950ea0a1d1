import type { Cursor } from './cursor.ts'

/** Common table expressions in sight, by their names. */
export type Scope = ReadonlySet<string>

/** A statement while it is read. The parts of the grammar call each other through it, because each can stand inside of every other. */
export type Reader = Cursor & {
  /** Tables and views a customer may name. */
  readonly tables: ReadonlySet<string>
  /** The one database name that may stand before them. */
  readonly database: string
  /** Names given to expressions. */
  readonly aliases: Set<string>
  /** Tables that IN looks through, by the names they are called there. */
  readonly searched: Set<string>
  /** Whether this is the list that IN looks through: a name with a database before it would be a table there. */
  isInSet: boolean
  query(scope: Scope): void
  /** With the name that may be given to it. */
  expression(scope: Scope): void
  /** Without. */
  operation(scope: Scope): void
  tableName(scope: Scope): void
}

/** One or more, separated by commas. */
export function readList(reader: Cursor, read: () => void): void {
  do read()
  while (reader.takeSymbol(',') !== undefined)
}

export function readExpressions(reader: Reader, scope: Scope): void {
  readList(reader, () => reader.expression(scope))
}

/** What stands in parentheses, on the way in and out; the opening one has been read. */
export function readNested(reader: Reader, close: string, read: () => void): void {
  const { isInSet } = reader
  reader.isInSet = false
  reader.nested(read)
  reader.isInSet = isInSet
  reader.expectSymbol(close)
}
