import type { Hex } from '../../contract/stream-events.ts'
import { type NumberRange, NumberRanges } from '../../core/number-ranges.ts'
import type { Work } from '../../core/work.ts'
import type { RecordPlace } from '../../platform/files/record-log.ts'
import type { BlockOutcome } from '../rpc/block-store.ts'
import { type ArchivedFacts, hasPrefix, txnPrefix } from './archived-record.ts'

export type ArchivedEntry = {
  readonly facts: ArchivedFacts
  readonly place: RecordPlace
  outcome: BlockOutcome | undefined
}

/** Entries examined at a time in a search for a transaction, well below a millisecond. */
const YIELD_EVERY = 2048

/** The blocks on disk by id, hash, number and transaction, in memory. */
export class ArchiveIndex {
  /** The numbers that have a block other than abandoned ones. */
  readonly numbers = new NumberRanges()
  /** All numbers on disk. */
  readonly recorded = new NumberRanges()
  /** In order of recording. */
  readonly #byId = new Map<Hex, ArchivedEntry>()
  readonly #byHash = new Map<Hex, ArchivedEntry>()
  readonly #byNumber = new Map<number, ArchivedEntry[]>()

  get size(): number {
    return this.#byId.size
  }

  /** Lowest and highest number. */
  get range(): NumberRange | undefined {
    const [first, last] = [this.numbers.at(0), this.numbers.at(-1)]
    return first && last && { from: first.from, to: last.to }
  }

  add(entry: ArchivedEntry): void {
    const { id, hash, number } = entry.facts
    const before = this.#byId.get(id)
    if (before !== undefined) this.#remove(before)
    this.#byId.set(id, entry)
    this.#byHash.set(hash, entry)
    this.#byNumber.set(number, [...(this.#byNumber.get(number) ?? []), entry])
    this.recorded.add(number)
    this.#updateNumber(number)
  }

  /** A block is final, or abandoned. False if it was known before, or there is no such block. */
  settle(id: Hex, outcome: BlockOutcome): boolean {
    const entry = this.#byId.get(id)
    if (entry === undefined || entry.outcome === outcome) return false
    entry.outcome = outcome
    this.#updateNumber(entry.facts.number)
    return true
  }

  removeSegment(segment: number): void {
    for (const entry of this.#byId.values()) if (entry.place.segment === segment) this.#remove(entry)
  }

  remove(entry: ArchivedEntry): void {
    if (this.#byId.get(entry.facts.id) === entry) this.#remove(entry)
  }

  byId(id: Hex): ArchivedEntry | undefined {
    return this.#byId.get(id)
  }

  /** By Ethereum hash or by consensus id. */
  byHash(hash: Hex): ArchivedEntry | undefined {
    return this.#byId.get(hash) ?? this.#byHash.get(hash)
  }

  /** The final block of a number, else the last recorded one that is not abandoned. */
  byNumber(number: number): ArchivedEntry | undefined {
    const entries = this.#byNumber.get(number)
    return entries?.find(isFinal) ?? entries?.findLast(({ outcome }) => outcome !== 'rejected')
  }

  /** Two final blocks of one number are of two chains. */
  hasTwoFinal(number: number): boolean {
    return (this.#byNumber.get(number) ?? []).filter(isFinal).length > 1
  }

  /** The final block with the highest number. */
  highestFinal(): ArchivedEntry | undefined {
    let highest: ArchivedEntry | undefined
    for (const entry of this.#byId.values())
      if (isFinal(entry) && entry.facts.number > (highest?.facts.number ?? -1)) highest = entry
    return highest
  }

  /** Blocks that may contain a transaction, final ones and later ones first, without abandoned ones. */
  *byTxn(hash: Hex): Work<ArchivedEntry[]> {
    const prefix = txnPrefix(hash)
    const found: ArchivedEntry[] = []
    let examined = 0
    for (const entry of [...this.#byId.values()]) {
      if (hasPrefix(entry.facts.txnPrefixes, prefix) && !this.#isAbandoned(entry)) found.push(entry)
      if (++examined % YIELD_EVERY === 0) yield
    }
    return found.toReversed().toSorted((a, b) => Number(isFinal(b)) - Number(isFinal(a)))
  }

  /** Rejected, or another block of its number is final. */
  #isAbandoned(entry: ArchivedEntry): boolean {
    if (entry.outcome !== undefined) return entry.outcome === 'rejected'
    return this.#byNumber.get(entry.facts.number)?.some(isFinal) ?? false
  }

  #updateNumber(number: number): void {
    if (this.byNumber(number) === undefined) this.numbers.remove(number)
    else this.numbers.add(number)
  }

  #remove(entry: ArchivedEntry): void {
    const { id, hash, number } = entry.facts
    this.#byId.delete(id)
    if (this.#byHash.get(hash) === entry) this.#byHash.delete(hash)
    const others = this.#byNumber.get(number)?.filter((one) => one !== entry) ?? []
    if (others.length > 0) this.#byNumber.set(number, others)
    else {
      this.#byNumber.delete(number)
      this.recorded.remove(number)
    }
    this.#updateNumber(number)
  }
}

function isFinal({ outcome }: ArchivedEntry): boolean {
  return outcome === 'final'
}
