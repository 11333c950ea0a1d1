/** What stands at the head of a backup. */
export type BackupHeader = {
  readonly format: number
  readonly schema_version: number
  readonly revision: number
  /** The last line of the audit chain and its hash. */
  readonly audit: { readonly seq: number; readonly hash: string }
  /** ISO 8601, UTC. */
  readonly made_at: string
  /** Of the Sluice that made it. */
  readonly version: string
}

export type BackupSummary = {
  readonly header: BackupHeader
  /** How many of each kind. */
  readonly counts: Readonly<Record<string, number>>
  readonly sha256: string
}

/** What the store does not know itself. */
export type BackupFacts = { readonly madeAtMs: number; readonly version: string }
