import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { PackedBlock } from './block-codec.ts'
import { RecordFile, readRecords } from './record-file.ts'

/** A new file is started when the current one reaches this size; a file is removed when none of its blocks is needed. */
const SEGMENT_BYTES = 8 * 1024 * 1024
const NAME = /^(\d{12})\.blocks$/

export type StoredBlock = PackedBlock & { readonly slot: number }

/** The blocks on disk: append-only files named after their first slot. */
export class LedgerFile implements Disposable {
  readonly #dir: string
  readonly #firstSlots: number[]
  #current: RecordFile | undefined

  constructor(dir: string) {
    this.#dir = dir
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    this.#firstSlots = readdirSync(dir)
      .flatMap((name) => NAME.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => a - b)
  }

  /**
   * All valid blocks in slot order. Reading stops at the first gap or damaged record; everything after it is removed,
   * because a chain cannot continue after a gap. Must be run to its end before the first append.
   */
  *readAll(): Generator<StoredBlock> {
    let next: number | undefined
    for (const [index, firstSlot] of this.#firstSlots.entries()) {
      const path = this.#path(firstSlot)
      if (next !== undefined && firstSlot !== next) return this.#removeFrom(index)
      let validBytes = 0
      for (const { body, end } of readRecords(path)) {
        const block = split(body)
        if (next !== undefined && block.slot !== next) break
        next = block.slot + 1
        validBytes = end
        yield block
      }
      const isLast = index === this.#firstSlots.length - 1
      if (isLast) this.#current = RecordFile.open(path, validBytes)
    }
  }

  append({ slot, core, writes }: StoredBlock): void {
    if (this.#current && this.#current.bytes >= SEGMENT_BYTES) {
      this.#current.sync()
      this.#current[Symbol.dispose]()
      this.#current = undefined
    }
    if (!this.#current) {
      this.#current = RecordFile.open(this.#path(slot), 0)
      this.#firstSlots.push(slot)
    }
    const header = Buffer.alloc(12)
    header.writeBigUInt64LE(BigInt(slot), 0)
    header.writeUInt32LE(core.length, 8)
    this.#current.append(header, core, writes)
  }

  sync(): void {
    this.#current?.sync()
  }

  /** Removes files that hold only blocks below `slot`. */
  dropBelow(slot: number): void {
    while (this.#firstSlots.length > 1 && (this.#firstSlots[1] as number) <= slot) {
      rmSync(this.#path(this.#firstSlots.shift() as number), { force: true })
    }
  }

  [Symbol.dispose](): void {
    this.#current?.[Symbol.dispose]()
    this.#current = undefined
  }

  #path(firstSlot: number): string {
    return join(this.#dir, `${String(firstSlot).padStart(12, '0')}.blocks`)
  }

  #removeFrom(index: number): void {
    for (const firstSlot of this.#firstSlots.splice(index)) {
      const path = this.#path(firstSlot)
      if (existsSync(path)) rmSync(path)
    }
    const last = this.#firstSlots.at(-1)
    if (last === undefined) return
    let validBytes = 0
    for (const { end } of readRecords(this.#path(last))) validBytes = end
    this.#current = RecordFile.open(this.#path(last), validBytes)
  }
}

/** slot u64 | length of core u32 | core | writes. */
function split(body: Uint8Array): StoredBlock {
  const view = new DataView(body.buffer, body.byteOffset, body.length)
  const slot = Number(view.getBigUint64(0, true))
  const coreEnd = 12 + view.getUint32(8, true)
  return { slot, core: new Uint8Array(body.subarray(12, coreEnd)), writes: body.subarray(coreEnd) }
}
