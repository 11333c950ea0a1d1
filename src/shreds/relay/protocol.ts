import type { UdpEngine, UdpPortOptions } from '../../platform/udp/port.ts'
import type { SHRED_FAULTS } from '../../solana/shred/shred.ts'
import type { LeaderRange } from './leaders.ts'

/** What the relaying thread is started with. Plain data. */
export type RelayOptions = {
  readonly port: UdpPortOptions
  readonly version?: number | undefined
  readonly signatures: 'auto' | 'off'
  readonly signatureFailuresPerSecond: number
  readonly shredsPerSlotMax: number
  readonly window: { readonly backSlots: number; readonly aheadSlots: number }
  readonly caps: {
    readonly destinationPacketsPerSecond: number
    readonly destinationBytesPerSecond: number
    readonly totalPacketsPerSecond: number
    readonly totalBytesPerSecond: number
  }
  readonly leaders: readonly LeaderRange[]
  readonly destinations: readonly Lease[]
}

/** A subscription's right to packets at one place. */
export type Lease = { readonly subscriptionId: string; readonly ip: string; readonly port: number }

export type ToRelay =
  | { readonly kind: 'destinations'; readonly list: readonly Lease[]; readonly round: number }
  | { readonly kind: 'leaders'; readonly ranges: readonly LeaderRange[] }
  | { readonly kind: 'stop' }

export type FromRelay =
  | {
      readonly kind: 'ready'
      readonly engine: UdpEngine
      readonly note: string | undefined
      readonly address: { readonly host: string; readonly port: number }
      readonly receiveBufferBytes: number
    }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string; readonly fix: string | undefined }
  /** The list of this round is in force: nothing leaves for any other place. */
  | { readonly kind: 'settled'; readonly round: number }
  | RelayReport
  | { readonly kind: 'stopped' }

/** What happened since the last report. */
export type RelayReport = {
  readonly kind: 'report'
  readonly counts: RelayCounts
  readonly perSource: readonly number[]
  readonly destinations: readonly DestinationReport[]
  readonly newestSlot: number | undefined
  readonly version: number | undefined
  readonly windowResets: number
  /** Since the port was opened. */
  readonly overruns: number
}

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
  readonly dropped: Record<DropReason, number>
  /** Of `malformed`, by the rule that was broken. */
  readonly faults: Record<(typeof SHRED_FAULTS)[number], number>
}

/** Why a relayed packet did not go to one destination. */
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
  /** Slots of which at least one packet was sent for the first time. */
  readonly slots: number
  readonly firstSlot: number | undefined
  readonly lastSlot: number | undefined
  /** Copies that came in and were not sent on. */
  readonly duplicates: number
  readonly state: DestinationState
  readonly lastFault: string | undefined
}
