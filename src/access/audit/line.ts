import { hash } from 'node:crypto'
import { ServiceError } from '../../core/error.ts'
import { redactText } from '../../core/redact.ts'
import type { Actor } from '../store/model.ts'
import type { AuditEntry, ChangeContext } from '../store/store.ts'

/**
 * One change in the audit log: a line of JSON with the hash of the previous line. To alter, remove or insert a line undetected, every later line and
 * the head in the store must be altered too.
 */
export type AuditLine = {
  readonly seq: number
  /** ISO 8601, UTC. */
  readonly time: string
  readonly actor: {
    uid: number
    user: string
    sudo_user: string | null
    tty: string | null
    /** The administrator, of a change over the admin API. */
    admin?: Actor['admin']
  }
  readonly action: string
  /** Ids of the changed records. */
  readonly subjects: readonly string[]
  readonly before: unknown
  readonly after: unknown
  /** Version of the tool that made the change. */
  readonly version: string
  /** SHA-256 of the bytes of the previous line, in hex. */
  readonly prev: string
}

/** The last line of a chain: its number and the hash of its bytes. */
export type AuditHead = { readonly seq: number; readonly hash: string }

export const CHAIN_START: AuditHead = { seq: 0, hash: '0'.repeat(64) }

/** A change with a longer line is refused. */
export const AUDIT_LINE_BYTES_MAX = 1024 * 1024

export function createAuditLine(
  head: AuditHead,
  { entry, context, version }: { entry: AuditEntry; context: ChangeContext; version: string },
): string {
  const line: AuditLine = {
    seq: head.seq + 1,
    time: new Date(context.nowMs).toISOString(),
    actor: printActor(context.actor),
    action: entry.action,
    subjects: entry.subjects,
    before: masked(entry.before ?? null),
    after: masked(entry.after ?? null),
    version,
    prev: head.hash,
  }
  const text = JSON.stringify(line)
  if (Buffer.byteLength(text) > AUDIT_LINE_BYTES_MAX) {
    throw new ServiceError('invalid-value', `the change is too large to be recorded in one line of the audit log`)
  }
  return text
}

export function hashLine(line: string | Uint8Array): string {
  return hash('sha256', line, 'hex')
}

/** The head of a chain after this line. */
export function headAfter(seq: number, line: string | Uint8Array): AuditHead {
  return { seq, hash: hashLine(line) }
}

/** The number and previous hash of a line; undefined when it is not a line of a chain. */
export function readLink(line: string | Uint8Array): { seq: number; prev: string } | undefined {
  try {
    const parsed: unknown = JSON.parse(typeof line === 'string' ? line : Buffer.from(line).toString())
    const { seq, prev } = parsed as Partial<AuditLine>
    return typeof seq === 'number' && typeof prev === 'string' ? { seq, prev } : undefined
  } catch {
    return undefined
  }
}

/** Whether the line follows `head`. */
export function chainsOn(line: string | Uint8Array, head: AuditHead): boolean {
  const link = readLink(line)
  return link?.seq === head.seq + 1 && link.prev === head.hash
}

/** Whether these bytes are an incomplete line after `head`, left by an interrupted writer. */
export function isUnfinished(bytes: Uint8Array, head: AuditHead): boolean {
  if (readLink(bytes) !== undefined) return chainsOn(bytes, head)
  const start = Buffer.from(`{"seq":${head.seq + 1},"time":"`)
  const length = Math.min(start.length, bytes.length)
  return start.subarray(0, length).equals(bytes.subarray(0, length))
}

function printActor({ uid, user, sudoUser, tty, admin }: Actor): AuditLine['actor'] {
  return { uid, user, sudo_user: sudoUser, tty, ...(admin === undefined ? {} : { admin }) }
}

/** Redacts secrets as a last safeguard; entries should not contain any. */
function masked(value: unknown): unknown {
  if (typeof value === 'string') return redactText(value)
  if (Array.isArray(value)) return value.map(masked)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, masked(part)]))
}
