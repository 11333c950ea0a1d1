import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { lockCell, unlockCell } from '../../core/spin-lock.ts'
import {
  ACCOUNT,
  CELL_BYTES,
  CELL_FLOATS,
  CELL_INTS,
  FIELD,
  FLAG,
  HEADER,
  HEADER_INTS,
  KIND,
  layoutOf,
  MARKS,
  type Mark,
  NAME_AT,
  NAME_BYTES_MAX,
  SHARE,
} from './account-layout.ts'
import { PERMIT_KINDS, PermitCounts } from './permit-counts.ts'
import { PermitSharing, SHARING_INTS } from './permit-sharing.ts'

/** The name of a cell for a text: itself where it fits. The names of methods in a plan may be long, and any characters. */
function nameFor(text: string): string {
  if (text.length <= NAME_BYTES_MAX && /^[\x20-\x7e]*$/.test(text)) return text
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}

/** The memory as one thread sees it. Cells are given by their number, which is above zero. */
export class AccountMemory {
  readonly permits: PermitCounts
  readonly sharing: PermitSharing
  readonly #ints: Int32Array
  readonly #floats: Float64Array
  readonly #header: Int32Array
  readonly #headerFloats: Float64Array
  readonly #index: Int32Array
  readonly #bytes: Buffer
  readonly #cells: number
  readonly #marks: readonly Int32Array[]
  /** The lock owner: 0 means unlocked. */
  readonly #owner: number

  /** `thread` counts from 0 and is used by one thread at a time. */
  constructor(memory: SharedArrayBuffer, thread: number) {
    this.#header = new Int32Array(memory, 0, HEADER_INTS)
    this.#headerFloats = new Float64Array(memory, 0, HEADER_INTS / 2)
    const threads = this.#header[HEADER.threads] as number
    assert(thread < threads, 'the memory has no such thread')
    const layout = layoutOf(this.#header[HEADER.accountsMax] as number, threads)
    const { cells, positions, cellsAt, marksAt, markInts, permitsAt, totalsAt, changedAt } = layout
    this.#cells = cells
    this.#index = new Int32Array(memory, HEADER_INTS * 4, positions)
    this.#ints = new Int32Array(memory, cellsAt, cells * CELL_INTS)
    this.#floats = new Float64Array(memory, cellsAt, cells * CELL_FLOATS)
    this.#bytes = Buffer.from(memory, cellsAt, cells * CELL_BYTES)
    this.#marks = Array.from(
      { length: MARKS },
      (_, at) => new Int32Array(memory, marksAt + at * markInts * 4, markInts),
    )
    const counts = new Int32Array(memory, permitsAt, cells * threads * PERMIT_KINDS)
    const totals = new Int32Array(memory, totalsAt, threads * PERMIT_KINDS)
    const changed = new Int32Array(memory, changedAt, markInts)
    this.permits = new PermitCounts({ counts, totals, changed, threads }, thread)
    this.sharing = new PermitSharing({
      state: new Int32Array(memory, layout.sharingAt, SHARING_INTS),
      others: new Int32Array(memory, layout.othersAt, cells * PERMIT_KINDS),
      published: new Int32Array(memory, layout.publishedAt, cells * PERMIT_KINDS),
      listed: new Uint8Array(memory, layout.listedAt, cells),
    })
    this.#owner = thread + 1
  }

  get openAccounts(): number {
    return Atomics.load(this.#header, HEADER.openAccounts)
  }

  /** Cells that are or were in use are below this number. */
  get cellsEnd(): number {
    return Atomics.load(this.#header, HEADER.nextCell)
  }

  lock(cell: number): void {
    lockCell(this.#ints, cell * CELL_INTS + FIELD.lock, this.#owner)
  }

  unlock(cell: number): void {
    unlockCell(this.#ints, cell * CELL_INTS + FIELD.lock)
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

  isNamed(cell: number, text: string): boolean {
    return this.#hasName(cell, nameFor(text))
  }

  isAccount(cell: number): boolean {
    const kind = this.int(cell, FIELD.kind)
    return kind === KIND.account || kind === KIND.resting
  }

  /** Whether the account is open, which it stays only as long as its lock is held. */
  isOpen(cell: number): boolean {
    return this.int(cell, FIELD.kind) === KIND.account
  }

  /** The buckets of an account. The caller holds its lock, or runs where nobody else closes accounts. */
  *bucketsOf(account: number): Generator<number> {
    for (let cell = this.int(account, FIELD.next); cell !== 0; cell = this.int(cell, FIELD.next)) yield cell
  }

  /** The bucket of an account by its key; 0 where it has none. The caller holds the account's lock. */
  findBucket(account: number, key: string): number {
    const name = nameFor(key)
    for (const bucket of this.bucketsOf(account)) if (this.#hasName(bucket, name)) return bucket
    return 0
  }

  /** Reserves a bucket for each name. Done before the account is locked; `addBucket` uses them, `freeCells` returns the rest. */
  reserveCells(count: number): number[] {
    this.#lockTable()
    const cells = Array.from({ length: count }, () => this.#takeCell())
    this.#unlockTable()
    return cells
  }

  freeCells(cells: readonly number[]): void {
    if (cells.length === 0) return
    this.#lockTable()
    for (const cell of cells) this.#freeCell(cell)
    this.#unlockTable()
  }

  /** Adds a reserved cell to the account as a bucket. The caller holds the account's lock. */
  addBucket(account: number, cell: number, key: string): void {
    this.#setName(cell, nameFor(key))
    this.setInt(cell, FIELD.kind, KIND.bucket)
    this.setInt(cell, FIELD.next, this.int(account, FIELD.next))
    this.setInt(account, FIELD.next, cell)
  }

  /** The cell of the account; created where there is none, opened where it is closed and `isOpened` is asked for. */
  attach(id: string, isOpened: boolean): number {
    this.#lockTable()
    const cell = this.#attach(id)
    if (isOpened && !this.isOpen(cell)) this.#open(cell)
    this.#unlockTable()
    return cell
  }

  #attach(id: string): number {
    const position = this.#findPosition(id)
    let cell = this.#index[position] as number
    if (cell === 0) {
      cell = this.#takeCell()
      this.#setName(cell, nameFor(id))
      this.setInt(cell, FIELD.kind, KIND.resting)
      this.setFloat(cell, ACCOUNT.month, 0)
      this.setFloat(cell, ACCOUNT.used, 0)
      // Taking a cell may have removed another account, and moved positions.
      this.#index[this.#findPosition(id)] = cell
    }
    return cell
  }

  /** The cell of the account; 0 where there is none. */
  find(id: string): number {
    this.#lockTable()
    const cell = this.#index[this.#findPosition(id)] as number
    this.#unlockTable()
    return cell
  }

  /**
   * Closes an account if the condition still holds under its lock: its buckets are freed, and its own cell too where neither units of the month nor
   * permits are left to remember.
   */
  closeIf(cell: number, condition: () => boolean, isForgettable: () => boolean): void {
    this.#lockTable()
    this.lock(cell)
    if (this.isOpen(cell) && condition()) this.#close(cell)
    const isForgotten = this.int(cell, FIELD.kind) === KIND.resting && isForgettable() && !this.#hasPermits(cell)
    if (isForgotten) this.#forget(cell)
    this.unlock(cell)
    if (isForgotten) this.#freeCell(cell)
    this.#unlockTable()
  }

  mark(mark: Mark, cell: number): void {
    Atomics.or(this.#marks[mark] as Int32Array, cell >>> 5, 1 << (cell & 31))
  }

  /** The marked cells; their marks are removed. */
  *takeMarked(mark: Mark): Generator<number> {
    const words = this.#marks[mark] as Int32Array
    const end = Math.ceil(this.cellsEnd / 32)
    for (let word = 0; word < end; word++) {
      if (Atomics.load(words, word) === 0) continue
      for (let bits = Atomics.exchange(words, word, 0); bits !== 0; bits &= bits - 1)
        yield word * 32 + (31 - Math.clz32(bits & -bits))
    }
  }

  /** Accounts that are opened from now on use this share; undefined where the shared ledger is reachable or not used. */
  setLocalShare(share: number | undefined): void {
    this.#lockTable()
    this.#header[HEADER.isLocal] = share === undefined ? 0 : 1
    this.#headerFloats[SHARE] = share ?? 1
    this.#unlockTable()
  }

  /**
   * Takes a permit of a kind for an account, unless all threads together have as many as they may. Returns the account's cell, which stays as long
   * as it has permits; 0 where none is given.
   */
  acquirePermit(id: string, kind: number, limit: number): number {
    this.#lockTable()
    const cell = this.#attach(id)
    const own = this.permits.of(cell, kind)
    const isGiven = own < this.sharing.most(cell, kind, limit)
    if (isGiven) this.permits.add(cell, kind, 1)
    // Refused because of other processes: their permits may have been released.
    else if (own < limit) this.permits.markChanged(cell)
    this.#unlockTable()
    return isGiven ? cell : 0
  }

  /** The permits of an account to publish now; undefined where other processes know of none. The cell stays until they are told that it has none. */
  takePermits(cell: number): number[] | undefined {
    this.#lockTable()
    const counts = this.#hasPermits(cell)
      ? Array.from({ length: PERMIT_KINDS }, (_, kind) => this.permits.of(cell, kind))
      : undefined
    if (counts !== undefined) this.sharing.sending(cell, counts)
    this.#unlockTable()
    return counts
  }

  /** Whether the account has permits, or other processes count some of it. */
  #hasPermits(cell: number): boolean {
    return this.permits.hasAny(cell) || this.sharing.isListed(cell)
  }

  #open(cell: number): void {
    const isFull = (this.#header[HEADER.openAccounts] as number) >= (this.#header[HEADER.accountsMax] as number)
    if (isFull) this.#closeAny()
    this.lock(cell)
    this.setInt(cell, FIELD.kind, KIND.account)
    this.setInt(cell, FIELD.generation, this.int(cell, FIELD.generation) + 1)
    this.setInt(cell, FIELD.flags, this.#header[HEADER.isLocal] === 1 ? FLAG.local : 0)
    this.setFloat(cell, ACCOUNT.configuration, -1)
    this.setFloat(cell, ACCOUNT.spent, 0)
    this.setFloat(cell, ACCOUNT.booked, 0)
    this.setFloat(cell, ACCOUNT.bookedAtMs, Number.NEGATIVE_INFINITY)
    this.setFloat(cell, ACCOUNT.share, this.#headerFloats[SHARE] as number)
    this.setFloat(cell, ACCOUNT.opening, Atomics.add(this.#header, HEADER.opened, 1))
    this.unlock(cell)
    this.#header[HEADER.openAccounts] = (this.#header[HEADER.openAccounts] as number) + 1
  }

  /** Closes the open account that the hand reaches next, preferably one without units to book. */
  #closeAny(): void {
    const end = this.cellsEnd
    let hand = this.#header[HEADER.hand] as number
    for (let tried = 0; tried < 2 * end; tried++) {
      hand = hand + 1 < end ? hand + 1 : 1
      if (!this.isOpen(hand)) continue
      this.lock(hand)
      const isBooked = this.float(hand, ACCOUNT.spent) === this.float(hand, ACCOUNT.booked)
      const isClosed = this.isOpen(hand) && (isBooked || tried >= end)
      if (isClosed) this.#close(hand)
      this.unlock(hand)
      if (isClosed) break
    }
    this.#header[HEADER.hand] = hand
  }

  /** The caller holds both locks. */
  #close(cell: number): void {
    this.setInt(cell, FIELD.kind, KIND.resting)
    this.setInt(cell, FIELD.generation, this.int(cell, FIELD.generation) + 1)
    let bucket = this.int(cell, FIELD.next)
    this.setInt(cell, FIELD.next, 0)
    while (bucket !== 0) {
      const next = this.int(bucket, FIELD.next)
      this.#freeCell(bucket)
      bucket = next
    }
    this.#header[HEADER.openAccounts] = (this.#header[HEADER.openAccounts] as number) - 1
  }

  /** Removes a resting account from the index; later entries of its run move up. */
  #forget(cell: number): void {
    const last = this.#index.length - 1
    let hole = this.#findPosition(this.nameOf(cell))
    this.setInt(cell, FIELD.generation, this.int(cell, FIELD.generation) + 1)
    this.#index[hole] = 0
    for (let at = (hole + 1) & last; this.#index[at] !== 0; at = (at + 1) & last) {
      const moved = this.#index[at] as number
      const home = crc32(this.nameOf(moved)) & last
      const isBetween = hole <= at ? hole < home && home <= at : hole < home || home <= at
      if (isBetween) continue
      this.#index[hole] = moved
      this.#index[at] = 0
      hole = at
    }
  }

  #findPosition(id: string): number {
    const name = nameFor(id)
    const last = this.#index.length - 1
    let position = crc32(name) & last
    for (let cell = this.#index[position] as number; cell !== 0; cell = this.#index[position] as number) {
      if (this.#hasName(cell, name)) break
      position = (position + 1) & last
    }
    return position
  }

  #takeCell(): number {
    const free = this.#header[HEADER.firstFree] as number
    if (free !== 0) {
      this.#header[HEADER.firstFree] = this.int(free, FIELD.next)
      this.setInt(free, FIELD.next, 0)
      return free
    }
    const cell = this.#header[HEADER.nextCell] as number
    if (cell < this.#cells) {
      Atomics.store(this.#header, HEADER.nextCell, cell + 1)
      return cell
    }
    this.#forgetAny()
    return this.#takeCell()
  }

  /** Frees the cell of a resting account without permits. There are more cells than open accounts use, so there is one. */
  #forgetAny(): void {
    for (let cell = 1; cell < this.#cells; cell++) {
      if (this.int(cell, FIELD.kind) !== KIND.resting || this.#hasPermits(cell)) continue
      this.lock(cell)
      this.#forget(cell)
      this.unlock(cell)
      this.#freeCell(cell)
      return
    }
    this.#closeAny()
  }

  #freeCell(cell: number): void {
    this.setInt(cell, FIELD.kind, KIND.free)
    this.setInt(cell, FIELD.next, this.#header[HEADER.firstFree] as number)
    this.#header[HEADER.firstFree] = cell
  }

  #hasName(cell: number, name: string): boolean {
    return this.int(cell, FIELD.nameBytes) === name.length && this.nameOf(cell) === name
  }

  #setName(cell: number, name: string): void {
    this.setInt(cell, FIELD.nameBytes, this.#bytes.write(name, cell * CELL_BYTES + NAME_AT, 'latin1'))
  }

  #lockTable(): void {
    lockCell(this.#header, HEADER.lock, this.#owner)
  }

  #unlockTable(): void {
    unlockCell(this.#header, HEADER.lock)
  }
}
