import { recordOf } from '../../core/record-of.ts'
import { CELL_BYTES, type PacketArena } from '../../platform/udp/port.ts'
import { createShredHead, SHRED_FAULTS, scanShred } from '../../solana/shred/shred.ts'
import { createDedupe } from './dedupe.ts'
import type { Batch } from './fan-out.ts'
import { DROP_REASONS, type DropReason, type RelayCounts, type RelayOptions } from './protocol.ts'
import type { SlotLimits } from './slot-limits.ts'
import { createSlotWindow, type SlotWindow } from './slot-window.ts'
import type { Verifier } from './verify.ts'

/** Selects the packets to relay: from an allowed source, well-formed, current, not a duplicate, and signed by the leader, checked in this order. */
export type Receiver = {
  /** Checks the first `count` packets of the arena. The result is valid until the next call. */
  select(count: number, nowMs: number): Batch
  readonly window: SlotWindow
  /** Within `limitsMax`. */
  setLimits(limits: SlotLimits): void
  /** By arena cell of the last batch: 1 for a packet whose signature was not checked, because the leader is not known or checks are off. */
  readonly unchecked: Uint8Array
  /** Counts since the last call. */
  takeCounts(): { readonly counts: RelayCounts; readonly perSource: number[] }
}

type ReceiverOptions = Pick<RelayOptions, 'version' | 'signatures' | 'limits' | 'limitsMax'> & {
  readonly sources: number
}

export function createReceiver(arena: PacketArena, options: ReceiverOptions, verifier: Verifier): Receiver {
  const { bytes, words, lengths, sources } = arena
  const { limitsMax } = options
  let { shredsPerSlotMax } = options.limits
  const window = createSlotWindow({ ...options.limits.window, version: options.version })
  const dedupe = createDedupe({
    // The ring is as long as the longest window, so two current slots never share a ring entry.
    slots: limitsMax.window.backSlots + limitsMax.window.aheadSlots + 1,
    shredsPerSlotMax: limitsMax.shredsPerSlotMax,
  })
  const isChecking = options.signatures === 'auto'
  const head = createShredHead()
  const codingCells = new Uint8Array(lengths.length)
  const unchecked = new Uint8Array(lengths.length)
  const batch: Batch = {
    order: new Uint8Array(lengths.length),
    data: 0,
    code: 0,
    slots: new Float64Array(lengths.length),
    slotCount: 0,
    duplicates: 0,
  }
  let counts = newRelayCounts()
  let perSource = Array.from({ length: options.sources }, () => 0)

  /** Why the packet in this arena cell is dropped; undefined when it is relayed. */
  function dropReasonOf(cell: number, nowMs: number): DropReason | undefined {
    const source = sources[cell] as number
    if (source < 0) return 'source'
    perSource[source] = (perSource[source] as number) + 1
    const at = cell * CELL_BYTES
    const fault = scanShred(bytes, at, lengths[cell] as number, head, shredsPerSlotMax)
    if (fault !== undefined) {
      counts.faults[fault] += 1
      return 'malformed'
    }
    const current = window.classify(head.slot, head.version, nowMs)
    if (current !== 'current') return current
    const wordAt = at >> 2
    if (dedupe.has(words, wordAt, head)) return 'duplicate'
    unchecked[cell] = 1
    if (isChecking) {
      const verdict = verifier.check(bytes, at, head, nowMs)
      if (verdict === 'signed') unchecked[cell] = 0
      if (verdict === 'unchecked') counts.unchecked += 1
      else if (verdict !== 'signed') return verdict
    }
    if (!dedupe.add(words, wordAt, head)) return 'conflicting'
    window.advance(head.slot, head.version, nowMs)
    return undefined
  }

  function addSlot(slot: number): void {
    for (let i = 0; i < batch.slotCount; i++) if (batch.slots[i] === slot) return
    batch.slots[batch.slotCount++] = slot
  }

  return {
    window,
    setLimits(limits) {
      shredsPerSlotMax = limits.shredsPerSlotMax
      window.setLength(limits.window)
    },
    unchecked,
    select(count, nowMs) {
      batch.data = 0
      batch.code = 0
      batch.slotCount = 0
      batch.duplicates = 0
      counts.received += count
      for (let cell = 0; cell < count; cell++) {
        const reason = dropReasonOf(cell, nowMs)
        if (reason !== undefined) {
          counts.dropped[reason] += 1
          if (reason === 'duplicate') batch.duplicates += 1
          continue
        }
        counts.relayed += 1
        addSlot(head.slot)
        if (head.layout.kind === 'data') batch.order[batch.data++] = cell
        else codingCells[batch.code++] = cell
      }
      for (let i = 0; i < batch.code; i++) batch.order[batch.data + i] = codingCells[i] as number
      return batch
    },
    takeCounts() {
      const taken = { counts, perSource }
      counts = newRelayCounts()
      perSource = perSource.map(() => 0)
      return taken
    },
  }
}

export function newRelayCounts(): RelayCounts {
  return {
    received: 0,
    relayed: 0,
    unchecked: 0,
    dropped: recordOf(DROP_REASONS, () => 0),
    faults: recordOf(SHRED_FAULTS, () => 0),
  }
}
