import { createHash } from 'node:crypto'
import { lockCell, unlockCell } from '../../core/spin-lock.ts'
import { CELL_BYTES, CELL_FLOATS, CELL_INTS, FIELD, KIND, NAME_AT, NAME_BYTES_MAX } from './memory-layout.ts'

/** The name of a cell for a text: itself where it fits. The names of methods in a plan may be long, and any characters. */
export function nameFor(text: string): string {
  if (text.length <= NAME_BYTES_MAX && /^[\x20-\x7e]*$/.test(text)) return text
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}

export type CellArea = { readonly memory: SharedArrayBuffer; readonly at: number; readonly cells: number }

/** The cells of quota accounts as one thread sees them: fields, names, the lock of an account and the chain of its buckets. */
export class QuotaCells {
  readonly #ints: Int32Array
  readonly #floats: Float64Array
  readonly #bytes: Buffer
  /** The lock owner: 0 means unlocked. */
  readonly #owner: number

  constructor({ memory, at, cells }: CellArea, thread: number) {
    this.#ints = new Int32Array(memory, at, cells * CELL_INTS)
    this.#floats = new Float64Array(memory, at, cells * CELL_FLOATS)
    this.#bytes = Buffer.from(memory, at, cells * CELL_BYTES)
    this.#owner = thread + 1
  }

  lock(cell: number): void {
    lockCell(this.#ints, cell * CELL_INTS + FIELD.lock, this.#owner)
  }

  unlock(cell: number): void {
    unlockCell(this.#ints, cell * CELL_INTS + FIELD.lock)
  }

  /** Releases the lock if a dead thread has left it. */
  unlockOf(cell: number, thread: number): void {
    const lock = cell * CELL_INTS + FIELD.lock
    if (this.#ints[lock] === thread + 1) Atomics.compareExchange(this.#ints, lock, thread + 1, 0)
  }

  int(cell: number, field: number): number {
    return this.#ints[cell * CELL_INTS + field] as number
  }

  setInt(cell: number, field: number, value: number): void {
    this.#ints[cell * CELL_INTS + field] = value
  }

  float(cell: number, field: number): number {
    return this.#floats[cell * CELL_FLOATS + field] as number
  }

  setFloat(cell: number, field: number, value: number): void {
    this.#floats[cell * CELL_FLOATS + field] = value
  }

  nameOf(cell: number): string {
    const at = cell * CELL_BYTES + NAME_AT
    return this.#bytes.toString('latin1', at, at + this.int(cell, FIELD.nameBytes))
  }

  setName(cell: number, name: string): void {
    this.setInt(cell, FIELD.nameBytes, this.#bytes.write(name, cell * CELL_BYTES + NAME_AT, 'latin1'))
  }

  hasName(cell: number, name: string): boolean {
    return this.int(cell, FIELD.nameBytes) === name.length && this.nameOf(cell) === name
  }

  isNamed(cell: number, text: string): boolean {
    return this.hasName(cell, nameFor(text))
  }

  isAccount(cell: number): boolean {
    const kind = this.int(cell, FIELD.kind)
    return kind === KIND.account || kind === KIND.closed
  }

  /** Whether the account is open, which it stays only as long as its lock is held. */
  isOpen(cell: number): boolean {
    return this.int(cell, FIELD.kind) === KIND.account
  }

  /** The buckets of an account. The caller holds its lock, or runs where no other thread closes accounts. */
  *bucketsOf(account: number): Generator<number> {
    for (let cell = this.int(account, FIELD.next); cell !== 0; cell = this.int(cell, FIELD.next)) yield cell
  }

  /** The bucket of an account by its key; 0 where it has none. The caller holds the account's lock. */
  findBucket(account: number, key: string): number {
    const name = nameFor(key)
    for (const bucket of this.bucketsOf(account)) if (this.hasName(bucket, name)) return bucket
    return 0
  }

  /** Adds a reserved cell to the account as a bucket. The caller holds the account's lock. */
  addBucket(account: number, cell: number, key: string): void {
    this.setName(cell, nameFor(key))
    this.setInt(cell, FIELD.kind, KIND.bucket)
    this.setInt(cell, FIELD.next, this.int(account, FIELD.next))
    this.setInt(account, FIELD.next, cell)
  }
}
