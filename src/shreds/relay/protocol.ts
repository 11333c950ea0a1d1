import { recordOf } from '../../core/records.ts'
import type { GrantedSchedule, ThreadSchedule } from '../../platform/native/thread-schedule.ts'
import type { UdpEngine, UdpPortOptions } from '../../platform/udp/port.ts'
import { SHRED_FAULTS } from '../../solana/shred/shred.ts'
import type { LeaderRange } from './leaders.ts'
import type { SlotLimits } from './slot-limits.ts'

/** What the relay thread is started with: plain data. */
export type RelayOptions = {
  readonly port: UdpPortOptions
  readonly version?: number | undefined
  readonly signatures: 'auto' | 'off'
  readonly signatureFailuresPerSecond: number
  /** At the present length of a slot. */
  readonly limits: SlotLimits
  /** At any length. */
  readonly limitsMax: SlotLimits
  readonly caps: {
    readonly destinationPacketsPerSecond: number
    readonly destinationBytesPerSecond: number
    readonly totalPacketsPerSecond: number
    readonly totalBytesPerSecond: number
  }
  readonly leaders: readonly LeaderRange[]
  readonly destinations: readonly Lease[]
  /** Ring to the engine of ShredStream Decoded, when it is on (decoded/input-ring.ts). */
  readonly decodedInput?: SharedArrayBuffer | undefined
  /** How far behind its newest slot the engine closes a slot: packets further ahead of the main chain are not passed to it. */
  readonly decodedSlotsBehindMax?: number | undefined
  /** Memory shared with the checking thread (signature-ring.ts). Without it, the relay checks signatures itself. */
  readonly signatureMemory?: SharedArrayBuffer | undefined
  /** The sockets of the relay thread, which the main thread closes where it was terminated (descriptor-list.ts). */
  readonly descriptorMemory?: SharedArrayBuffer | undefined
  readonly schedule: ThreadSchedule
}

/** Grants a subscription shreds at one address. */
export type Lease = { readonly subscriptionId: string; readonly ip: string; readonly port: number }

export type ToRelay =
  | { readonly kind: 'destinations'; readonly list: readonly Lease[]; readonly round: number }
  | { readonly kind: 'leaders'; readonly ranges: readonly LeaderRange[] }
  | { readonly kind: 'limits'; readonly limits: SlotLimits }
  | { readonly kind: 'stop' }

export type FromRelay =
  | {
      readonly kind: 'ready'
      readonly engine: UdpEngine
      readonly note: string | undefined
      readonly address: { readonly host: string; readonly port: number }
      readonly receiveBufferBytes: number
      readonly schedule: GrantedSchedule
      /** Delays count from the kernel's time of receipt, not from when the packet was read. */
      readonly hasKernelTimes: boolean
    }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string; readonly fix: string | undefined }
  /** The list of this round is in effect: no packet is sent to any other address. */
  | { readonly kind: 'settled'; readonly round: number }
  | RelayReport
  | { readonly kind: 'stopped' }

/** Counts since the previous report. */
export type RelayReport = {
  readonly kind: 'report'
  readonly counts: RelayCounts
  readonly perSource: readonly number[]
  readonly destinations: readonly DestinationReport[]
  readonly newestSlot: number | undefined
  readonly version: number | undefined
  readonly windowResets: number
  /** Packets dropped by the kernel since the port was opened. */
  readonly overruns: number
  readonly delays: DelayCounts
}

/** The time from the receipt of a packet to when it was sent to all destinations, as a histogram. */
export type DelayCounts = {
  /** Packets up to each of DELAY_BOUNDS_MICROS, and last those above; not cumulative. */
  readonly packets: readonly number[]
  readonly sumMicros: number
}

/** Upper bounds. */
export const DELAY_BOUNDS_MICROS = [
  25, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000, 10_000, 25_000, 100_000,
] as const

/** Why a packet was not relayed. */
export const DROP_REASONS = [
  'source',
  'malformed',
  'version',
  'late',
  'ahead',
  'duplicate',
  'forged',
  'too-many-forged',
  'conflicting',
] as const
export type DropReason = (typeof DROP_REASONS)[number]

export type RelayCounts = {
  received: number
  relayed: number
  /** Relayed without a signature check because the leader is not known. */
  unchecked: number
  /** Signature checks that the relay made itself because the checking thread did not run or did not keep up. */
  checkedHere: number
  /** Relayed although most packets are of far newer slots. */
  behind: number
  readonly dropped: Record<DropReason, number>
  /** The `malformed` drops by the rule that was broken. */
  readonly faults: Record<(typeof SHRED_FAULTS)[number], number>
}

export function newRelayCounts(): RelayCounts {
  return {
    received: 0,
    relayed: 0,
    unchecked: 0,
    checkedHere: 0,
    behind: 0,
    dropped: recordOf(DROP_REASONS, () => 0),
    faults: recordOf(SHRED_FAULTS, () => 0),
  }
}

/** Why a relayed packet was not sent to one destination. */
export const UNSENT_REASONS = ['rate', 'total-rate', 'buffer', 'paused', 'error'] as const
export type UnsentReason = (typeof UNSENT_REASONS)[number]

export const DESTINATION_STATES = ['sending', 'paused', 'trying'] as const
export type DestinationState = (typeof DESTINATION_STATES)[number]

export type DestinationReport = {
  readonly lease: Lease
  readonly packets: number
  readonly bytes: number
  readonly unsent: Readonly<Record<UnsentReason, number>>
  readonly refusals: number
  /** Slots of which the first packet was sent in this period. */
  readonly slots: number
  readonly firstSlot: number | undefined
  readonly lastSlot: number | undefined
  /** Duplicates received and not relayed. */
  readonly duplicates: number
  readonly state: DestinationState
  readonly lastFault: string | undefined
}
