import { BATCH_PACKETS, CELL_BYTES, type PacketArena } from '../../../platform/udp/port.ts'
import { createShredHead, type ShredHead, scanShred } from '../../../solana/shred/shred.ts'
import { createDedupe } from '../dedupe.ts'
import { createHeldPackets } from '../held-packets.ts'
import { type DropReason, newRelayCounts, type RelayCounts, type RelayOptions } from '../protocol.ts'
import { createRelayWindow, type RelayWindow } from '../relay-window.ts'
import type { SlotLimits } from '../slot-limits.ts'
import type { WindowVerdict } from '../slot-window.ts'
import type { Verifier } from '../verify.ts'
import { createBatchPreparation } from './prepare-batch.ts'
import { createBatchBuilder, type RelayedBatch } from './relayed-batch.ts'

/** Selects the packets to relay: from an allowed source, well-formed, current, not a duplicate, and signed by the leader, checked in this order. */
export type Selector = {
  /** Checks the first `count` packets of the arena. The result is valid until the next call. A packet whose FEC set is being checked is held. */
  select(count: number, nowMs: number): RelayedBatch
  /**
   * Held packets whose FEC set is known to be signed by now; undefined without one. The result is valid until the next call. To be called at each tick, also
   * while nothing is held (pending-checks.ts).
   */
  release(nowMs: number): RelayedBatch | undefined
  /** Whether packets are held. */
  isHolding(): boolean
  readonly window: RelayWindow
  /** Within `limitsMax`. */
  setLimits(limits: SlotLimits): void
  readonly marks: PacketMarks
  /** Counts since the last call. */
  takeCounts(): { readonly counts: RelayCounts; readonly perSource: number[] }
}

/** By arena cell of the last batch. */
export type PacketMarks = {
  /** 1 for a packet whose signature was not checked, because the leader is not known or checks are off. */
  readonly unchecked: Uint8Array
  /** 1 for a packet of a slot far ahead of the main chain, or of another version. */
  readonly offMainChain: Uint8Array
  /** The generation of the main chain (relay-window.ts) when the packet was selected, modulo 256. */
  readonly generation: Uint8Array
  /** That of now. */
  latestGeneration(): number
}

type SelectorOptions = Pick<
  RelayOptions,
  'version' | 'signatures' | 'limits' | 'limitsMax' | 'decodedSlotsBehindMax'
> & {
  readonly sources: number
}

/** What happens to a packet: it is relayed, held until its FEC set is checked, or dropped. */
type Outcome = 'relay' | 'held' | DropReason

export function createSelector(arena: PacketArena, options: SelectorOptions, verifier: Verifier): Selector {
  const { bytes, words, lengths, sources } = arena
  const { limitsMax } = options
  let { shredsPerSlotMax } = options.limits
  const window = createRelayWindow({
    ...options.limits.window,
    version: options.version,
    reachSlots: options.decodedSlotsBehindMax ?? limitsMax.window.aheadSlots,
  })
  const dedupe = createDedupe({
    isCurrent: window.hasSlot,
    // The ring is as long as the longest window, so two slots of one window never share a ring entry.
    slots: limitsMax.window.backSlots + limitsMax.window.aheadSlots + 1,
    shredsPerSlotMax: limitsMax.shredsPerSlotMax,
  })
  const isChecking = options.signatures === 'auto'
  const prepared = createBatchPreparation(arena, { window, dedupe, verifier })
  const { heads, faults } = prepared
  const releasedHead = createShredHead()
  /** The header of the packet that is being processed. */
  let head = releasedHead
  const held = createHeldPackets(arena)
  const marks: PacketMarks = {
    unchecked: new Uint8Array(lengths.length),
    offMainChain: new Uint8Array(lengths.length),
    generation: new Uint8Array(lengths.length),
    latestGeneration: () => window.generation() & 0xff,
  }
  const { unchecked } = marks
  const batch = createBatchBuilder()
  let counts = newRelayCounts()
  let perSource = Array.from({ length: options.sources }, () => 0)

  /** Checks the packet in this arena cell, whose header was read. */
  function processPacket(cell: number, nowMs: number): Outcome {
    const source = sources[cell] as number
    if (source < 0) return 'source'
    perSource[source] = (perSource[source] as number) + 1
    const at = cell * CELL_BYTES
    head = heads[cell] as ShredHead
    const fault = faults[cell]
    if (fault !== undefined) {
      counts.faults[fault] += 1
      return 'malformed'
    }
    const current = window.classify(head.slot, head.version, nowMs)
    if (current !== 'current' && !mayBeFirstSigned(current)) return current
    if (dedupe.has(words, at >> 2, head)) return 'duplicate'
    unchecked[cell] = 1
    if (isChecking) {
      const verdict = verifier.verify(bytes, at, head, nowMs)
      if (verdict === 'pending') return hold(cell, verifier.pendingSet(), nowMs)
      if (verdict === 'unchecked') {
        const uncheckedVerdict = window.classifyUnchecked(head.slot, head.version, nowMs)
        if (uncheckedVerdict !== 'current') return uncheckedVerdict
        counts.unchecked += 1
      } else if (verdict !== 'signed') return verdict
      else unchecked[cell] = 0
    }
    return record(cell, nowMs)
  }

  /** After a start any packet of an unknown leader can be the first one: until one is signed, it makes no packet late that can be checked. */
  function mayBeFirstSigned(verdict: WindowVerdict): boolean {
    if (!isChecking || !window.isUnproven()) return false
    return (verdict !== 'version' || options.version === undefined) && verifier.hasLeader(head.slot)
  }

  function hold(cell: number, set: number, nowMs: number): Outcome {
    if (held.hold(cell, set)) return 'held'
    // All cells are taken: the checking thread does not keep up, and this one helps.
    verifier.decideHere(set)
    releaseDecided()
    if (!verifier.isSigned(set)) return 'forged'
    unchecked[cell] = 0
    return record(cell, nowMs)
  }

  /** Records a packet that passed every other check. */
  function record(cell: number, nowMs: number): 'relay' | 'conflicting' {
    const { slot, version } = head
    if (!dedupe.add(words, (cell * CELL_BYTES) >> 2, head)) return 'conflicting'
    window.advance(slot, version, nowMs, unchecked[cell] === 0)
    marks.offMainChain[cell] = window.isOfMainChain(slot, version) ? 0 : 1
    marks.generation[cell] = window.generation()
    if (window.isBehindMainChain(slot, version)) counts.behind += 1
    return 'relay'
  }

  /** Releases or drops the held packets of FEC sets that are no longer pending. */
  function releaseDecided(): void {
    for (let set = verifier.takeDecided(); set >= 0; set = verifier.takeDecided()) {
      if (verifier.isSigned(set)) held.release(set)
      else counts.dropped.forged += held.drop(set)
    }
  }

  /** Checks a held packet whose FEC set is signed: another copy of it may have been held, too. */
  function processReleasedPacket(cell: number, nowMs: number): Outcome {
    const at = cell * CELL_BYTES
    head = releasedHead
    if (scanShred(bytes, at, lengths[cell] as number, head, shredsPerSlotMax) !== undefined) return 'malformed'
    if (dedupe.has(words, at >> 2, head)) return 'duplicate'
    unchecked[cell] = 0
    return record(cell, nowMs)
  }

  /** Counts a packet, and adds it to the batch when it is relayed. */
  function addPacket(cell: number, outcome: Outcome): void {
    if (outcome === 'held') return
    if (outcome !== 'relay') {
      counts.dropped[outcome] += 1
      if (outcome === 'duplicate') batch.addDuplicate()
      return
    }
    counts.relayed += 1
    batch.add(cell, head)
  }

  return {
    window,
    setLimits(limits) {
      shredsPerSlotMax = limits.shredsPerSlotMax
      window.setLength(limits.window)
    },
    marks,
    select(count, nowMs) {
      batch.begin()
      counts.received += count
      prepared.scan(count, shredsPerSlotMax)
      if (isChecking && verifier.isHashingTogether) prepared.hash(count, nowMs)
      for (let cell = 0; cell < count; cell++) addPacket(cell, processPacket(cell, nowMs))
      return batch.end()
    },
    release(nowMs) {
      held.freeTaken()
      if (!isChecking) return undefined
      verifier.takeVerdicts(nowMs)
      releaseDecided()
      batch.begin()
      let taken = 0
      for (let cell = held.take(); cell >= 0; cell = held.take()) {
        addPacket(cell, processReleasedPacket(cell, nowMs))
        taken += 1
        if (taken === BATCH_PACKETS) break
      }
      return taken === 0 ? undefined : batch.end()
    },
    isHolding: () => held.count() > 0,
    takeCounts() {
      counts.checkedHere = verifier.takeCheckedHere()
      const taken = { counts, perSource }
      counts = newRelayCounts()
      perSource = perSource.map(() => 0)
      return taken
    },
  }
}
