import { createHash } from 'node:crypto'
import { ServiceError } from '../../core/error.ts'
import { AUDIT_LINE_BYTES_MAX, CHAIN_START, chainsOn, headAfter } from '../audit/line.ts'
import { type BillingRow, billingTable } from '../store/billing/tables.ts'
import type { AddedUsage, MethodUsageRow, RecordKind, Records } from '../store/model.ts'
import { type LastUsedRow, RECORD_KINDS } from '../store/tables.ts'
import { type BackupExtra, type BackupHeader, type BackupSummary, isExtraKind } from './summary.ts'

/**
 * A backup is JSON lines, each with one key that names its kind. Records and audit lines are as in the store, so both engines can restore them. It
 * contains hashes of tokens and passwords, never the secrets. Secret keys are encrypted (`sealed.ts`).
 *
 *   {"backup":{"format":3,"schema_version":1,"revision":17,"audit":{"seq":17,"hash":"…"},"made_at":"…","version":"…"}}
 *   {"customers":{"id":"cus_…",…}}         every record, by kind
 *   {"audit":"{\"seq\":1,…}"}              every line of the chain, byte for byte
 *   {"usage":{…}}  {"usage_methods":{…}}  {"last_used":{…}}
 *   {"billing_events":{…}}  {"billing_state":{…}}  {"billing_customers":{…}}  what was sent to a billing system
 *   {"sealed_keys":{…}}                    encrypted: key files of the state folder, keys shared by the processes of the store
 *   {"cursor":{…}}  {"shred_delivery":{…}}  {"shred_delays":{…}}  {"tip_day":[…]}  {"tip_recent":[…]}  {"tip_counted":{…}}
 *                                          other content of the state folder (`processes/compose/access/state-content.ts`)
 *   {"end":{"lines":123,"sha256":"…"}}     the number of lines before it, and the hash of their bytes
 */
export const BACKUP_FORMAT = 3
/** Format 1 has the store only; format 2 has no transactions beside the tips (`tip_recent`, `tip_counted`). */
export const BACKUP_FORMAT_MIN = 1

export type BackupEntry =
  | { readonly [K in RecordKind]: { readonly kind: K; readonly record: Records[K] } }[RecordKind]
  | { readonly kind: 'audit'; readonly line: string }
  | { readonly kind: 'usage'; readonly row: AddedUsage }
  | { readonly kind: 'usage_methods'; readonly row: MethodUsageRow }
  | { readonly kind: 'last_used'; readonly row: LastUsedRow }
  | BillingRow
  | BackupExtra

/** The longest audit line as a JSON string: every character escaped. */
export const BACKUP_LINE_BYTES_MAX = 2 * AUDIT_LINE_BYTES_MAX + 1024

/** Writes the lines of a backup, with their number and hash at the end. */
export function createBackupWriter(header: BackupHeader, put: (text: string) => Promise<void>) {
  const hash = createHash('sha256')
  const counts: Record<string, number> = {}
  let lines = 0

  async function write(value: object): Promise<void> {
    const text = `${JSON.stringify(value)}\n`
    hash.update(text)
    lines += 1
    await put(text)
  }
  return {
    begin: () => write({ backup: header }),
    async add(kind: BackupEntry['kind'], value: unknown): Promise<void> {
      counts[kind] = (counts[kind] ?? 0) + 1
      await write({ [kind]: value })
    },
    async end(): Promise<BackupSummary> {
      const sha256 = hash.digest('hex')
      await put(`${JSON.stringify({ end: { lines, sha256 } })}\n`)
      return { header, counts, sha256 }
    },
  }
}

type FileLine = { readonly bytes: Uint8Array; readonly ended: boolean }

/**
 * Reads and verifies a backup: every line, the audit chain, and at the end the hash of all lines. The entries must not be committed before
 * `onComplete` was called.
 */
export async function* readBackup(
  file: { readonly name: string; readonly lines: AsyncIterable<FileLine> },
  found: { onHeader(header: BackupHeader): void; onComplete(summary: BackupSummary): void },
): AsyncGenerator<BackupEntry> {
  const hash = createHash('sha256')
  const counts: Record<string, number> = {}
  const damaged = (what: string) => damagedBackup(file.name, what)
  let header: BackupHeader | undefined
  let chain = CHAIN_START
  let number = 0
  let isEnded = false

  for await (const { bytes, ended } of file.lines) {
    number += 1
    if (isEnded) throw damaged(`line ${number} comes after its end`)
    if (!ended) throw damaged(`line ${number} is truncated`)
    const [kind, value] = parseLine(bytes) ?? []
    if (kind === undefined) throw damaged(`line ${number} cannot be read`)
    if (header === undefined) {
      header = parseHeader(kind, value)
      if (header === undefined) throw damaged('its first line is not a backup header')
      found.onHeader(header)
    } else if (kind === 'end') {
      const sha256 = hash.digest('hex')
      const { lines, sha256: expected } = (value ?? {}) as { lines?: unknown; sha256?: unknown }
      if (lines !== number - 1 || sha256 !== expected) throw damaged('its lines are not those that were written')
      if (chain.seq !== header.audit.seq || chain.hash !== header.audit.hash)
        throw damaged(`the audit chain ends at line ${chain.seq}, not at ${header.audit.seq}`)
      isEnded = true
      found.onComplete({ header, counts, sha256 })
      continue
    } else {
      const entry = parseEntry(kind, value)
      if (entry === undefined) throw damaged(`line ${number} is of an unknown kind`)
      if (entry.kind === 'audit') {
        if (!chainsOn(entry.line, chain)) throw damaged(`line ${chain.seq + 1} of the audit chain was changed`)
        chain = headAfter(chain.seq + 1, entry.line)
      }
      counts[kind] = (counts[kind] ?? 0) + 1
      yield entry
    }
    hash.update(bytes).update('\n')
  }
  if (!isEnded) throw damaged(number === 0 ? 'it is empty' : `it is truncated after line ${number}`)
}

function parseLine(bytes: Uint8Array): [string, unknown] | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString())
    if (typeof value !== 'object' || value === null) return undefined
    const [only, ...more] = Object.entries(value)
    return more.length === 0 ? only : undefined
  } catch {
    return undefined
  }
}

function parseHeader(kind: string, value: unknown): BackupHeader | undefined {
  if (kind !== 'backup' || typeof value !== 'object' || value === null) return undefined
  const header = value as Partial<BackupHeader>
  const isComplete =
    typeof header.format === 'number' &&
    typeof header.schema_version === 'number' &&
    Number.isSafeInteger(header.revision) &&
    Number.isSafeInteger(header.audit?.seq) &&
    typeof header.audit?.hash === 'string'
  return isComplete ? (header as BackupHeader) : undefined
}

function parseEntry(kind: string, value: unknown): BackupEntry | undefined {
  if (kind === 'audit') return typeof value === 'string' ? { kind, line: value } : undefined
  if (typeof value !== 'object' || value === null) return undefined
  if (kind === 'usage') return { kind, row: value as AddedUsage }
  if (kind === 'usage_methods') return { kind, row: value as MethodUsageRow }
  if (kind === 'last_used') return { kind, row: value as LastUsedRow }
  if (billingTable(kind) !== undefined) return { kind, row: value } as BillingRow
  if (isExtraKind(kind)) return { kind, value }
  if (!(RECORD_KINDS as readonly string[]).includes(kind)) return undefined
  return { kind, record: value } as BackupEntry
}

export function damagedBackup(name: string, what: string): ServiceError {
  return new ServiceError('store-corrupt', `${name} is not a complete backup: ${what}`, {
    fields: { file: name },
    fix: 'Nothing was changed. Use another backup.',
  })
}
