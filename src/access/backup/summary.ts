import type { SharedKeyRow } from '../store/tables.ts'

/** The first line of a backup. */
export type BackupHeader = {
  readonly format: number
  readonly schema_version: number
  readonly revision: number
  /** The last line of the audit chain and its hash. */
  readonly audit: { readonly seq: number; readonly hash: string }
  /** ISO 8601, UTC. */
  readonly made_at: string
  /** The version of Sluice that made it. */
  readonly version: string
  /** Only in the backup of a state folder that has no access store, such as that of the standalone sender. */
  readonly store?: false
}

export type BackupSummary = {
  readonly header: BackupHeader
  /** Number of lines per kind. */
  readonly counts: Readonly<Record<string, number>>
  readonly sha256: string
}

/** Kinds of lines that are not rows of the store. */
const EXTRA_KINDS = [
  ...(['sealed_keys', 'cursor', 'shred_delivery', 'shred_delays'] as const),
  ...(['tip_day', 'tip_recent', 'tip_counted'] as const),
] as const
export type ExtraKind = (typeof EXTRA_KINDS)[number]
export type BackupExtra = { readonly kind: ExtraKind; readonly value: unknown }

export function isExtraKind(kind: string): kind is ExtraKind {
  return (EXTRA_KINDS as readonly string[]).includes(kind)
}

/** What the caller adds: facts of the header, and lines beside the rows of the store. */
export type BackupFacts = {
  readonly madeAtMs: number
  readonly version: string
  /** Called last, with the keys that the processes of the store share. These must be encrypted in the backup. */
  readonly extras?: (sharedKeys: readonly SharedKeyRow[]) => AsyncIterable<BackupExtra>
}
