import { type PacketArena, SLOT_BYTES } from '../../platform/udp/port.ts'
import { createShredHead, SHRED_FAULTS, type ShredFault, scanShred } from '../../solana/shred/shred.ts'
import { createSlotWindow, type SlotWindow } from '../tools/slot-window.ts'
import { createDedupe } from './dedupe.ts'
import type { Batch } from './fan-out.ts'
import { DROP_REASONS, type DropReason, type RelayCounts, type RelayOptions } from './protocol.ts'
import type { Verifier } from './verify.ts'

/** Turns received packets into the shreds that are worth relaying: from a known source, valid, current, signed, and new. */
export type Receiver = {
  /** Sorts the first `count` packets of the arena. The result is valid until the next call. */
  sort(count: number, nowMs: number): Batch
  readonly window: SlotWindow
  /** What happened since the last call. */
  takeCounts(): { readonly counts: RelayCounts; readonly perSource: number[] }
}

type ReceiverOptions = Pick<RelayOptions, 'version' | 'signatures' | 'shredsPerSlotMax' | 'window'> & {
  readonly sources: number
}

export function createReceiver(arena: PacketArena, options: ReceiverOptions, verifier: Verifier): Receiver {
  const { bytes, words, lengths, sources } = arena
  const window = createSlotWindow({ ...options.window, version: options.version })
  const dedupe = createDedupe({
    // Two slots that are current at the same time never share a place.
    slots: options.window.backSlots + options.window.aheadSlots + 1,
    shredsPerSlotMax: options.shredsPerSlotMax,
  })
  const isChecking = options.signatures === 'auto'
  const head = createShredHead()
  const codeSlots = new Uint8Array(lengths.length)
  const batch: Batch = {
    order: new Uint8Array(lengths.length),
    data: 0,
    code: 0,
    chainSlots: new Float64Array(lengths.length),
    chainSlotCount: 0,
    duplicates: 0,
  }
  let counts = newRelayCounts()
  let perSource = Array.from({ length: options.sources }, () => 0)

  /** Undefined when the packet is to be relayed. */
  function validate(slot: number, nowMs: number): DropReason | undefined {
    const source = sources[slot] as number
    if (source < 0) return 'source'
    perSource[source] = (perSource[source] as number) + 1
    const at = slot * SLOT_BYTES
    const fault = scanShred(bytes, at, lengths[slot] as number, head, options.shredsPerSlotMax)
    if (fault !== undefined) {
      counts.faults[fault] += 1
      return 'malformed'
    }
    const current = window.validate(head.slot, head.version, nowMs)
    if (current !== 'current') return current
    const wordAt = at >> 2
    if (dedupe.has(words, wordAt, head)) return 'duplicate'
    if (isChecking) {
      const verdict = verifier.check(bytes, at, head, nowMs)
      if (verdict === 'unchecked') counts.unchecked += 1
      else if (verdict !== 'signed') return verdict
    }
    if (!dedupe.add(words, wordAt, head)) return 'conflicting'
    window.moved(head.slot, head.version, nowMs)
    return undefined
  }

  function noteChainSlot(slot: number): void {
    for (let i = 0; i < batch.chainSlotCount; i++) if (batch.chainSlots[i] === slot) return
    batch.chainSlots[batch.chainSlotCount++] = slot
  }

  return {
    window,
    sort(count, nowMs) {
      batch.data = 0
      batch.code = 0
      batch.chainSlotCount = 0
      batch.duplicates = 0
      counts.received += count
      for (let slot = 0; slot < count; slot++) {
        const reason = validate(slot, nowMs)
        if (reason !== undefined) {
          counts.dropped[reason] += 1
          if (reason === 'duplicate') batch.duplicates += 1
          continue
        }
        counts.relayed += 1
        noteChainSlot(head.slot)
        if (head.layout.kind === 'data') batch.order[batch.data++] = slot
        else codeSlots[batch.code++] = slot
      }
      for (let i = 0; i < batch.code; i++) batch.order[batch.data + i] = codeSlots[i] as number
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
    dropped: Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as Record<DropReason, number>,
    faults: Object.fromEntries(SHRED_FAULTS.map((fault) => [fault, 0])) as Record<ShredFault, number>,
  }
}
