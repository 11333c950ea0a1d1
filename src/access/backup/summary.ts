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
}

export type BackupSummary = {
  readonly header: BackupHeader
  /** Number of lines per kind. */
  readonly counts: Readonly<Record<string, number>>
  readonly sha256: string
}

/** Facts that the caller adds to the header. */
export type BackupFacts = { readonly madeAtMs: number; readonly version: string }
