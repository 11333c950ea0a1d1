import { BATCH_PACKETS, CELL_BYTES, type PacketArena } from '../../../platform/udp/port.ts'
import { createShredHead, type ShredFault, type ShredHead, scanShred } from '../../../solana/shred/shred.ts'
import type { Dedupe } from '../dedupe.ts'
import type { RelayWindow } from '../relay-window.ts'
import type { Verifier } from '../verify.ts'

/** What is found out about all packets of a received batch before the first of them is processed. */
export type BatchPreparation = {
  /** By arena cell: the header of the packet, and what is wrong with its format. */
  readonly heads: readonly ShredHead[]
  readonly faults: readonly (ShredFault | undefined)[]
  /** Reads the headers of the packets that the port has received. */
  scan(count: number, shredsPerSlotMax: number): void
  /**
   * Hashes the packets that will be verified, as far as can be known before those in front of them are processed. A flood of packets that are dropped
   * costs no hashes; one that is left out here by mistake is hashed alone.
   */
  hash(count: number, nowMs: number): void
}

type BatchPreparationDeps = {
  readonly window: RelayWindow
  readonly dedupe: Dedupe
  readonly verifier: Verifier
}

export function createBatchPreparation(
  { bytes, words, lengths, sources }: PacketArena,
  { window, dedupe, verifier }: BatchPreparationDeps,
): BatchPreparation {
  const heads = Array.from({ length: BATCH_PACKETS }, createShredHead)
  const faults: (ShredFault | undefined)[] = Array.from({ length: BATCH_PACKETS }, () => undefined)
  const hashedCells = new Uint16Array(BATCH_PACKETS)
  return {
    heads,
    faults,
    scan(count, shredsPerSlotMax) {
      for (let cell = 0; cell < count; cell++) {
        if ((sources[cell] as number) < 0) continue
        const head = heads[cell] as ShredHead
        faults[cell] = scanShred(bytes, cell * CELL_BYTES, lengths[cell] as number, head, shredsPerSlotMax)
      }
    },
    hash(count, nowMs) {
      let hashed = 0
      let checksLeft = verifier.failuresLeft(nowMs)
      const isLimited = checksLeft < count
      for (let cell = 0; cell < count; cell++) {
        if ((sources[cell] as number) < 0 || faults[cell] !== undefined) continue
        const at = cell * CELL_BYTES
        const head = heads[cell] as ShredHead
        if (!window.isCurrent(head.slot, head.version) || !verifier.hasLeader(head.slot)) continue
        if (dedupe.has(words, at >> 2, head)) continue
        if (isLimited && !verifier.isOfKnownSet(bytes, at, head) && checksLeft-- < 1) continue
        hashedCells[hashed++] = cell
      }
      verifier.hashLeaves(bytes, hashedCells, hashed, heads)
    },
  }
}
