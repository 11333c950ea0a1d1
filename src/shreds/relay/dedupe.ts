import { FEC_SET_DATA_SHREDS, type ShredHead } from '../../solana/shred/shred.ts'

/**
 * The set of shreds already relayed. A shred is identified by slot, index, kind and the leader's signature: a leader that signs two versions of a
 * FEC set makes two shreds with one index, and each is relayed once. What a retransmitter may change (its own signature, bytes after the shred)
 * is not part of the identity.
 */
export type Dedupe = {
  has(words: Int32Array, wordAt: number, head: ShredHead): boolean
  /** False when the slot already has FURTHER_SIGNATURES_MAX additional signatures; the shred is then not recorded. */
  add(words: Int32Array, wordAt: number, head: ShredHead): boolean
}

export type DedupeOptions = {
  /** Size of the ring of slots, at least the length of a window of current slots. */
  readonly slots: number
  /** A slot that is not current is replaced by a new one. Two current slots share a place of the ring only where there are two windows. */
  isCurrent(slot: number): boolean
  readonly shredsPerSlotMax: number
}

/** Second and further signatures of the FEC sets of one slot. */
const FURTHER_SIGNATURES_MAX = 256
const SIGNATURE_WORDS = 16

type FecSetMarks = { readonly signature: Int32Array; data: number; code: number }

/** One bit per shred. A FEC set has 32 data and 32 coding shreds, so it has one 32-bit word for each kind. */
type SlotMarks = {
  slot: number
  readonly known: Uint8Array
  readonly signatures: Int32Array
  readonly data: Int32Array
  readonly code: Int32Array
  readonly further: Map<number, FecSetMarks[]>
  furtherCount: number
}

export function createDedupe(options: DedupeOptions): Dedupe {
  const sets = options.shredsPerSlotMax / FEC_SET_DATA_SHREDS
  const ring: (SlotMarks | undefined)[] = Array.from({ length: options.slots }, () => undefined)
  /** For slots whose place in the ring has a current slot of another window. */
  const second: (SlotMarks | undefined)[] = Array.from({ length: options.slots }, () => undefined)

  /** The slot of the previous packet, usually also that of this one: saves the modulo, which is slow for numbers above 2^31. */
  let latest: SlotMarks | undefined

  function knownMarksOf(slot: number): SlotMarks | undefined {
    if (latest?.slot === slot) return latest
    const ringIndex = slot % options.slots
    const first = ring[ringIndex]
    const marks = first?.slot === slot ? first : second[ringIndex]
    if (marks?.slot !== slot) return undefined
    latest = marks
    return marks
  }

  function marksOf(slot: number): SlotMarks {
    const known = knownMarksOf(slot)
    if (known !== undefined) return known
    const ringIndex = slot % options.slots
    const first = ring[ringIndex]
    const chosen = first !== undefined && options.isCurrent(first.slot) ? second : ring
    const fresh = chosen[ringIndex] ?? {
      slot,
      known: new Uint8Array(sets),
      signatures: new Int32Array(sets * SIGNATURE_WORDS),
      data: new Int32Array(sets),
      code: new Int32Array(sets),
      further: new Map<number, FecSetMarks[]>(),
      furtherCount: 0,
    }
    fresh.slot = slot
    fresh.known.fill(0)
    fresh.data.fill(0)
    fresh.code.fill(0)
    fresh.further.clear()
    fresh.furtherCount = 0
    chosen[ringIndex] = fresh
    return fresh
  }

  return {
    has(words, wordAt, { slot, layout, index, fecSetIndex }) {
      const marks = knownMarksOf(slot)
      if (marks === undefined) return false
      const set = fecSetIndex / FEC_SET_DATA_SHREDS
      if (marks.known[set] === 0) return false
      const isData = layout.kind === 'data'
      const bit = 1 << (index - fecSetIndex)
      if (isSame(marks.signatures, set * SIGNATURE_WORDS, words, wordAt)) {
        return (((isData ? marks.data[set] : marks.code[set]) as number) & bit) !== 0
      }
      const other = marks.further.get(set)?.find(({ signature }) => isSame(signature, 0, words, wordAt))
      return other !== undefined && ((isData ? other.data : other.code) & bit) !== 0
    },

    add(words, wordAt, { slot, layout, index, fecSetIndex }) {
      const marks = marksOf(slot)
      const set = fecSetIndex / FEC_SET_DATA_SHREDS
      const isData = layout.kind === 'data'
      const bit = 1 << (index - fecSetIndex)
      const at = set * SIGNATURE_WORDS
      if (marks.known[set] === 0) {
        marks.known[set] = 1
        for (let i = 0; i < SIGNATURE_WORDS; i++) marks.signatures[at + i] = words[wordAt + i] as number
      }
      if (isSame(marks.signatures, at, words, wordAt)) {
        const bits = isData ? marks.data : marks.code
        bits[set] = (bits[set] as number) | bit
        return true
      }
      const others = marks.further.get(set) ?? []
      let other = others.find(({ signature }) => isSame(signature, 0, words, wordAt))
      if (other === undefined) {
        if (marks.furtherCount >= FURTHER_SIGNATURES_MAX) return false
        marks.furtherCount += 1
        other = { signature: words.slice(wordAt, wordAt + SIGNATURE_WORDS), data: 0, code: 0 }
        others.push(other)
        marks.further.set(set, others)
      }
      if (isData) other.data |= bit
      else other.code |= bit
      return true
    },
  }
}

function isSame(a: Int32Array, aAt: number, b: Int32Array, bAt: number): boolean {
  for (let i = 0; i < SIGNATURE_WORDS; i++) if (a[aAt + i] !== b[bAt + i]) return false
  return true
}
