import { SET_SHREDS, type ShredHead } from '../../solana/shred/shred.ts'

/**
 * Which shreds were relayed already. A shred is known by slot, index, kind and the leader's signature: a leader that signs two versions of a set
 * makes two shreds of one index, and each is relayed once. What a relay may change on the way (the retransmitter's signature, bytes after the
 * shred) does not count.
 */
export type Dedupe = {
  has(words: Int32Array, wordAt: number, head: ShredHead): boolean
  /** False when the slot has too many sets of different signatures to tell them apart. */
  add(words: Int32Array, wordAt: number, head: ShredHead): boolean
}

export type DedupeOptions = {
  /** Slots told apart at one time; a later slot takes the place of one that is so many behind. */
  readonly slots: number
  readonly shredsPerSlotMax: number
}

/** Second and further signatures of the sets of one slot. */
const FURTHER_SIGNATURES_MAX = 256
const SIGNATURE_WORDS = 16

type SetMarks = { readonly signature: Int32Array; data: number; code: number }

/** One bit per shred. A set has 32 data and 32 code shreds, so its bits are one word of each kind. */
type SlotMarks = {
  slot: number
  readonly known: Uint8Array
  readonly signatures: Int32Array
  readonly data: Int32Array
  readonly code: Int32Array
  readonly further: Map<number, SetMarks[]>
  furtherCount: number
}

export function createDedupe(options: DedupeOptions): Dedupe {
  const sets = options.shredsPerSlotMax / SET_SHREDS
  const ring: (SlotMarks | undefined)[] = Array.from({ length: options.slots }, () => undefined)

  /** The slot of the packet before, which is mostly that of this one: a remainder of a number beyond 2^31 is slow. */
  let latest: SlotMarks | undefined

  function knownMarksOf(slot: number): SlotMarks | undefined {
    if (latest?.slot === slot) return latest
    const marks = ring[slot % options.slots]
    if (marks?.slot !== slot) return undefined
    latest = marks
    return marks
  }

  function marksOf(slot: number): SlotMarks {
    const known = knownMarksOf(slot)
    if (known !== undefined) return known
    const position = slot % options.slots
    const marks = ring[position]
    const fresh = marks ?? {
      slot,
      known: new Uint8Array(sets),
      signatures: new Int32Array(sets * SIGNATURE_WORDS),
      data: new Int32Array(sets),
      code: new Int32Array(sets),
      further: new Map<number, SetMarks[]>(),
      furtherCount: 0,
    }
    fresh.slot = slot
    fresh.known.fill(0)
    fresh.data.fill(0)
    fresh.code.fill(0)
    fresh.further.clear()
    fresh.furtherCount = 0
    ring[position] = fresh
    return fresh
  }

  return {
    has(words, wordAt, { slot, layout, index, setIndex }) {
      const marks = knownMarksOf(slot)
      if (marks === undefined) return false
      const set = setIndex / SET_SHREDS
      if (marks.known[set] === 0) return false
      const isData = layout.kind === 'data'
      const bit = 1 << (index - setIndex)
      if (isSame(marks.signatures, set * SIGNATURE_WORDS, words, wordAt)) {
        return (((isData ? marks.data[set] : marks.code[set]) as number) & bit) !== 0
      }
      const other = marks.further.get(set)?.find(({ signature }) => isSame(signature, 0, words, wordAt))
      return other !== undefined && ((isData ? other.data : other.code) & bit) !== 0
    },

    add(words, wordAt, { slot, layout, index, setIndex }) {
      const marks = marksOf(slot)
      const set = setIndex / SET_SHREDS
      const isData = layout.kind === 'data'
      const bit = 1 << (index - setIndex)
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
