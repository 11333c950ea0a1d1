import { PERMIT_KINDS } from './permit-table.ts'

export const SHARING_INTS = 3
const STATE = { mode: 0, processes: 1, requested: 2 } as const

/** `alone`: without a shared store. `settling`: not all processes have published yet. `local`: the store is unreachable. */
const MODE = { alone: 0, shared: 1, settling: 2, local: 3 } as const

/**
 * Where the sharing is: its mode, the number of processes and whether an exchange is requested; for each cell and kind the permits of the other processes, as last reported, and those
 * of this process that the store has at least; for each cell whether the store may have an entry of this process. One thread writes all but the request.
 */
export type SharingArrays = {
  readonly state: Int32Array
  readonly others: Int32Array
  readonly published: Int32Array
  readonly listed: Uint8Array
}

/** Permits that a process may open before they are published. See `permit-exchange.ts`. */
export function permitChunk(limit: number, processes: number): number {
  return Math.max(1, Math.ceil(limit / (2 * processes)))
}

/** Permits up to which a process opens further ones while the store is unreachable. */
export function permitShare(limit: number, processes: number): number {
  return Math.min(limit, Math.max(1, Math.floor(limit / processes)))
}

/** What the threads of a process know of the permits of other processes. */
export class PermitSharing {
  readonly #state: Int32Array
  readonly #others: Int32Array
  readonly #published: Int32Array
  readonly #listed: Uint8Array

  constructor({ state, others, published, listed }: SharingArrays) {
    this.#state = state
    this.#others = others
    this.#published = published
    this.#listed = listed
  }

  /** How many permits this process may have of an account. */
  most(cell: number, kind: number, limit: number): number {
    const mode = Atomics.load(this.#state, STATE.mode)
    if (mode === MODE.alone) return limit
    const processes = Atomics.load(this.#state, STATE.processes)
    const share = mode === MODE.shared ? limit : permitShare(limit, processes)
    if (mode === MODE.local) return share
    const at = cell * PERMIT_KINDS + kind
    const ahead = Atomics.load(this.#published, at) + permitChunk(limit, processes)
    return Math.min(share, limit - Atomics.load(this.#others, at), ahead)
  }

  /** Whether the permits of the account should be published at once: none of them is yet, or half of a chunk is not. */
  isDue(cell: number, kind: number, own: number, limit: number): boolean {
    if (!this.isReachable) return false
    if (!this.isListed(cell)) return true
    const unpublished = own - Atomics.load(this.#published, cell * PERMIT_KINDS + kind)
    return unpublished >= permitChunk(limit, Atomics.load(this.#state, STATE.processes)) / 2
  }

  /** Asks for an exchange before the next regular one. */
  request(): void {
    Atomics.store(this.#state, STATE.requested, 1)
  }

  takeRequest(): boolean {
    return Atomics.exchange(this.#state, STATE.requested, 0) === 1
  }

  get isReachable(): boolean {
    const mode = Atomics.load(this.#state, STATE.mode)
    return mode === MODE.shared || mode === MODE.settling
  }

  /** Permits of other processes. */
  others(cell: number, kind: number): number {
    return Atomics.load(this.#others, cell * PERMIT_KINDS + kind)
  }

  isListed(cell: number): boolean {
    return Atomics.load(this.#listed, cell) !== 0
  }

  setMode(mode: 'shared' | 'settling' | 'local', processes: number): void {
    Atomics.store(this.#state, STATE.processes, processes)
    Atomics.store(this.#state, STATE.mode, MODE[mode])
  }

  /** The counts are on their way: until the reply the store has these or the ones before. The caller holds the lock of the table. */
  sending(cell: number, counts: readonly number[]): void {
    Atomics.store(this.#listed, cell, 1)
    for (const [kind, count] of counts.entries()) {
      const at = cell * PERMIT_KINDS + kind
      if (count < Atomics.load(this.#published, at)) Atomics.store(this.#published, at, count)
    }
  }

  /** The store has the counts. Of an account without permits nothing is kept: others may change it unnoticed. */
  published(cell: number, counts: readonly number[], others: readonly number[]): void {
    const isListed = counts.some((count) => count > 0)
    for (const [kind, count] of counts.entries()) {
      const at = cell * PERMIT_KINDS + kind
      Atomics.store(this.#others, at, isListed ? (others[kind] as number) : 0)
      Atomics.store(this.#published, at, count)
    }
    if (!isListed) Atomics.store(this.#listed, cell, 0)
  }

  /** What the store has is unknown. */
  forget(cellsEnd: number): void {
    for (let at = 0; at < cellsEnd * PERMIT_KINDS; at++) {
      if (this.#others[at] !== 0) Atomics.store(this.#others, at, 0)
      if (this.#published[at] !== 0) Atomics.store(this.#published, at, 0)
    }
  }
}
