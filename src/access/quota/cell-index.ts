import { crc32 } from 'node:zlib'
import { nameFor, type QuotaCells } from './cells.ts'

/** Finds the cell of a quota account by its id: open addressing, with more positions than cells. The caller holds the lock of the table. */
export class CellIndex {
  readonly #positions: Int32Array
  readonly #cells: QuotaCells

  constructor(positions: Int32Array, cells: QuotaCells) {
    this.#positions = positions
    this.#cells = cells
  }

  /** 0 where there is none. */
  find(id: string): number {
    return this.#positions[this.#positionOf(id)] as number
  }

  /** For an id that has none. */
  add(id: string, cell: number): void {
    this.#positions[this.#positionOf(id)] = cell
  }

  /** Later entries of its run move up. */
  remove(cell: number): void {
    const positions = this.#positions
    const last = positions.length - 1
    let hole = this.#positionOf(this.#cells.nameOf(cell))
    positions[hole] = 0
    for (let at = (hole + 1) & last; positions[at] !== 0; at = (at + 1) & last) {
      const moved = positions[at] as number
      const home = crc32(this.#cells.nameOf(moved)) & last
      const isBetween = hole <= at ? hole < home && home <= at : hole < home || home <= at
      if (isBetween) continue
      positions[hole] = moved
      positions[at] = 0
      hole = at
    }
  }

  #positionOf(id: string): number {
    const name = nameFor(id)
    const last = this.#positions.length - 1
    let position = crc32(name) & last
    for (;;) {
      const cell = this.#positions[position] as number
      if (cell === 0 || this.#cells.hasName(cell, name)) return position
      position = (position + 1) & last
    }
  }
}
