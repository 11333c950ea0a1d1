import assert from 'node:assert/strict'
import { lockCell, unlockCell } from '../../core/spin-lock.ts'
import { CellIndex } from './cell-index.ts'
import { nameFor, QuotaCells } from './cells.ts'
import {
  ACCOUNT,
  FIELD,
  FLAG,
  HEADER,
  HEADER_INTS,
  KIND,
  layoutOf,
  MARKS,
  type Mark,
  OPENED,
  SHARE,
} from './memory-layout.ts'
import { PermitSharing, SHARING_INTS } from './permit-sharing.ts'
import { PERMIT_KINDS, PermitTable } from './permit-table.ts'

/** Cannot happen: only accounts with permits keep their cells, each permit is of an open connection, and there are more cells than connections. */
const FULL = 'the table of accounts has no room'

/** The quota accounts and permits of the process, as one thread sees them. Cells are given by their number, which is above zero. */
export class QuotaMemory extends QuotaCells {
  readonly permitTable: PermitTable
  readonly sharing: PermitSharing
  readonly #header: Int32Array
  readonly #headerFloats: Float64Array
  readonly #index: CellIndex
  readonly #cells: number
  readonly #marks: readonly Int32Array[]
  /** The lock owner: 0 means unlocked. */
  readonly #owner: number

  /** `thread` counts from 0 and is used by one thread at a time. */
  constructor(memory: SharedArrayBuffer, thread: number) {
    const header = new Int32Array(memory, 0, HEADER_INTS)
    const threads = header[HEADER.threads] as number
    assert(thread < threads, 'the memory has no such thread')
    const layout = layoutOf(header[HEADER.accountsMax] as number, threads)
    const { cells, positions, cellsAt, marksAt, markInts, permitsAt, totalsAt, changedAt } = layout
    super({ memory, at: cellsAt, cells }, thread)
    this.#header = header
    this.#headerFloats = new Float64Array(memory, 0, HEADER_INTS / 2)
    this.#cells = cells
    this.#index = new CellIndex(new Int32Array(memory, HEADER_INTS * 4, positions), this)
    this.#marks = Array.from(
      { length: MARKS },
      (_, at) => new Int32Array(memory, marksAt + at * markInts * 4, markInts),
    )
    const counts = new Int32Array(memory, permitsAt, cells * threads * PERMIT_KINDS)
    const totals = new Int32Array(memory, totalsAt, threads * PERMIT_KINDS)
    const changed = new Int32Array(memory, changedAt, markInts)
    this.permitTable = new PermitTable({ counts, totals, changed, threads }, thread)
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

  /** Releases the locks that a dead thread has left, so that no other one waits for them. */
  unlockAll(thread: number): void {
    Atomics.compareExchange(this.#header, HEADER.lock, thread + 1, 0)
    const end = this.cellsEnd
    for (let cell = 1; cell < end; cell++) this.unlockOf(cell, thread)
  }

  /** Reserves this many cells; called before the account is locked. `addBucket` uses them, `freeCells` returns the rest. */
  reserveCells(count: number): number[] {
    this.#lockTable()
    const cells = Array.from({ length: count }, () => this.#takeCell())
    this.#unlockTable()
    if (cells.includes(0)) this.freeCells(cells.filter((cell) => cell !== 0))
    assert(!cells.includes(0), FULL)
    return cells
  }

  freeCells(cells: readonly number[]): void {
    if (cells.length === 0) return
    this.#lockTable()
    for (const cell of cells) this.#freeCell(cell)
    this.#unlockTable()
  }

  /** The cell of the account; created where there is none, opened where it is closed and `isOpened` is asked for. */
  attach(id: string, isOpened: boolean): number {
    this.#lockTable()
    const cell = this.#attach(id)
    if (cell !== 0 && isOpened && !this.isOpen(cell)) this.#open(cell)
    this.#unlockTable()
    assert(cell !== 0, FULL)
    return cell
  }

  /** 0 where there is no room for one more. */
  #attach(id: string): number {
    let cell = this.#index.find(id)
    if (cell === 0) {
      cell = this.#takeCell()
      if (cell === 0) return 0
      this.setName(cell, nameFor(id))
      this.setInt(cell, FIELD.kind, KIND.closed)
      this.setFloat(cell, ACCOUNT.month, 0)
      this.setFloat(cell, ACCOUNT.used, 0)
      this.#index.add(id, cell)
    }
    return cell
  }

  /** The cell of the account; 0 where there is none. */
  find(id: string): number {
    this.#lockTable()
    const cell = this.#index.find(id)
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
    const isForgotten = this.int(cell, FIELD.kind) === KIND.closed && isForgettable() && !this.#hasPermits(cell)
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
    const isGiven = cell !== 0 && this.#addPermit(cell, kind, limit)
    this.#unlockTable()
    return isGiven ? cell : 0
  }

  #addPermit(cell: number, kind: number, limit: number): boolean {
    const own = this.permitTable.of(cell, kind)
    const isGiven = own < this.sharing.most(cell, kind, limit)
    if (isGiven) this.permitTable.add(cell, kind, 1)
    // Refused because of other processes: their permits may have been released.
    else if (own < limit) this.permitTable.markChanged(cell)
    return isGiven
  }

  /** The permits of an account to publish now; undefined where other processes know of none. The cell stays until they are told that it has none. */
  takePermits(cell: number): number[] | undefined {
    this.#lockTable()
    const counts = this.#hasPermits(cell)
      ? Array.from({ length: PERMIT_KINDS }, (_, kind) => this.permitTable.of(cell, kind))
      : undefined
    if (counts !== undefined) this.sharing.sending(cell, counts)
    this.#unlockTable()
    return counts
  }

  /** Whether the account has permits, or other processes count some of it. */
  #hasPermits(cell: number): boolean {
    return this.permitTable.hasAny(cell) || this.sharing.isListed(cell)
  }

  #open(cell: number): void {
    const isFull = (this.#header[HEADER.openAccounts] as number) >= (this.#header[HEADER.accountsMax] as number)
    if (isFull) this.#closeAny()
    this.lock(cell)
    this.setInt(cell, FIELD.kind, KIND.account)
    this.setInt(cell, FIELD.generation, this.int(cell, FIELD.generation) + 1)
    this.setInt(cell, FIELD.flags, this.#header[HEADER.isLocal] === 1 ? FLAG.local : 0)
    this.setFloat(cell, ACCOUNT.limitsVersion, -1)
    this.setFloat(cell, ACCOUNT.spent, 0)
    this.setFloat(cell, ACCOUNT.booked, 0)
    this.setFloat(cell, ACCOUNT.bookedAtMs, Number.NEGATIVE_INFINITY)
    this.setFloat(cell, ACCOUNT.share, this.#headerFloats[SHARE] as number)
    const opening = this.#headerFloats[OPENED] as number
    this.#headerFloats[OPENED] = opening + 1
    this.setFloat(cell, ACCOUNT.opening, opening)
    this.unlock(cell)
    this.#header[HEADER.openAccounts] = (this.#header[HEADER.openAccounts] as number) + 1
  }

  /** Closes the next open account in clock order (CLOCK eviction), preferably one without units to book. */
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
    this.setInt(cell, FIELD.kind, KIND.closed)
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

  /** Removes a closed account from the index. */
  #forget(cell: number): void {
    this.setInt(cell, FIELD.generation, this.int(cell, FIELD.generation) + 1)
    this.#index.remove(cell)
  }

  /** 0 where every cell is that of an account with permits. */
  #takeCell(): number {
    const cell = this.#header[HEADER.nextCell] as number
    if (this.#header[HEADER.firstFree] === 0 && cell < this.#cells) {
      Atomics.store(this.#header, HEADER.nextCell, cell + 1)
      return cell
    }
    if (this.#header[HEADER.firstFree] === 0 && !this.#forgetAny()) {
      // Its buckets are free then, and its own cell too where it has no permits.
      this.#closeAny()
      this.#forgetAny()
    }
    const free = this.#header[HEADER.firstFree] as number
    if (free === 0) return 0
    this.#header[HEADER.firstFree] = this.int(free, FIELD.next)
    this.setInt(free, FIELD.next, 0)
    return free
  }

  /** Frees the cell of a closed account without permits; false where there is none. */
  #forgetAny(): boolean {
    for (let cell = 1; cell < this.#cells; cell++) {
      if (this.int(cell, FIELD.kind) !== KIND.closed || this.#hasPermits(cell)) continue
      this.lock(cell)
      this.#forget(cell)
      this.unlock(cell)
      this.#freeCell(cell)
      return true
    }
    return false
  }

  #freeCell(cell: number): void {
    this.setInt(cell, FIELD.kind, KIND.free)
    this.setInt(cell, FIELD.next, this.#header[HEADER.firstFree] as number)
    this.#header[HEADER.firstFree] = cell
  }

  #lockTable(): void {
    lockCell(this.#header, HEADER.lock, this.#owner)
  }

  #unlockTable(): void {
    unlockCell(this.#header, HEADER.lock)
  }
}
