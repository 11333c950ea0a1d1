import { copyBytes } from '../../core/copy-bytes.ts'
import { BATCH_PACKETS, CELL_BYTES, type PacketArena } from '../../platform/udp/port.ts'
import { FEC_SETS_MAX } from './fec-sets.ts'

/** Packets whose FEC set is being checked, in the spare cells of the arena: in a list for each set, then in the list of those that may be sent. */
export type HeldPackets = {
  /** Copies a packet; false when all cells are taken. */
  hold(cell: number, set: number): boolean
  /** Moves the packets of a set to those that may be sent. */
  release(set: number): void
  /** Frees the packets of a set and returns how many there were. */
  drop(set: number): number
  /** The next packet that may be sent, or -1. The cell stays valid until `freeTaken`. */
  take(): number
  /** Frees the cells that were taken. */
  freeTaken(): void
  /** Packets that wait for a verdict or to be sent. */
  count(): number
}

/** Cells for packets that wait: at the highest rate measured about 20 ms of packets. Pages that are not used are not touched. */
export const HELD_PACKETS_MAX = 2048

/** A list of cells, linked through `nexts`: its first and last one, -1 when it is empty. */
type CellList = { first: number; last: number }

export function createHeldPackets({ bytes, lengths, arrivals }: PacketArena): HeldPackets {
  const nexts = new Int32Array(lengths.length).fill(-1)
  const firstOf = new Int32Array(FEC_SETS_MAX).fill(-1)
  const lastOf = new Int32Array(FEC_SETS_MAX).fill(-1)
  const free: CellList = { first: -1, last: -1 }
  const ready: CellList = { first: -1, last: -1 }
  const taken: CellList = { first: -1, last: -1 }
  let count = 0
  for (let cell = BATCH_PACKETS; cell < lengths.length; cell++) append(free, cell, cell)

  /** Appends the cells from `first` to `last`, which are linked. */
  function append(list: CellList, first: number, last: number): void {
    if (list.first === -1) list.first = first
    else nexts[list.last] = first
    list.last = last
    nexts[last] = -1
  }

  function takeFirst(list: CellList): number {
    const cell = list.first
    if (cell !== -1) list.first = nexts[cell] as number
    return cell
  }

  return {
    hold(cell, set) {
      const target = takeFirst(free)
      if (target === -1) return false
      const length = lengths[cell] as number
      copyBytes(bytes, cell * CELL_BYTES, cell * CELL_BYTES + length, bytes, target * CELL_BYTES)
      lengths[target] = length
      arrivals[target] = arrivals[cell] as number
      nexts[target] = -1
      if (firstOf[set] === -1) firstOf[set] = target
      else nexts[lastOf[set] as number] = target
      lastOf[set] = target
      count += 1
      return true
    },
    release(set) {
      if (firstOf[set] !== -1) append(ready, firstOf[set] as number, lastOf[set] as number)
      firstOf[set] = -1
    },
    drop(set) {
      let dropped = 0
      for (let cell = firstOf[set] as number; cell !== -1; cell = nexts[cell] as number) dropped += 1
      if (dropped > 0) append(free, firstOf[set] as number, lastOf[set] as number)
      firstOf[set] = -1
      count -= dropped
      return dropped
    },
    take() {
      const cell = takeFirst(ready)
      if (cell === -1) return -1
      append(taken, cell, cell)
      count -= 1
      return cell
    },
    freeTaken() {
      if (taken.first !== -1) append(free, taken.first, taken.last)
      taken.first = -1
    },
    count: () => count,
  }
}
