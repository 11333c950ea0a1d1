import { hash } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { AdminError } from './errors.ts'

const KEY = /^[\x21-\x7e]{1,128}$/
const KEPT_MS = 24 * 3_600_000
/** Responses kept at most, and their bytes. The oldest are dropped first. */
const KEPT_MAX = 10_000
const KEPT_BYTES_MAX = 16 * 1024 * 1024

export type KeptReply = { readonly status: number; readonly text: string; readonly headers: Record<string, string> }

type Entry = {
  readonly fingerprint: string
  readonly atMs: number
  reply?: KeptReply
  /** Names what a response with a secret created; the response itself is not kept. */
  created?: string
}

export type IdempotentRequest = {
  readonly adminId: string
  readonly key: string
  /** Method, target and body. */
  readonly content: readonly (string | Uint8Array)[]
}

export type Idempotency = {
  /** The kept response of a repeated request; undefined for the first, whose end must be reported by `finish` or `drop`. */
  begin(request: IdempotentRequest): KeptReply | undefined
  finish(request: IdempotentRequest, reply: KeptReply | { readonly created: string }): void
  /** Nothing was changed: the request may be performed again. */
  drop(request: IdempotentRequest): void
}

export function checkIdempotencyKey(key: string): string {
  if (KEY.test(key)) return key
  throw new AdminError('invalid-value', 'Idempotency-Key is not 1 to 128 printable characters', 'Send a UUID.')
}

/** Performs a repeated request once. In memory: keys do not survive a restart of the process. */
export function createIdempotency(clock: Clock): Idempotency {
  const entries = new Map<string, Entry>()
  let bytes = 0

  const nameOf = ({ adminId, key }: IdempotentRequest): string => `${adminId} ${key}`
  function remove(name: string): void {
    bytes -= entries.get(name)?.reply?.text.length ?? 0
    entries.delete(name)
  }
  function prune(): void {
    const oldestMs = clock.monotonicMs() - KEPT_MS
    for (const [name, entry] of entries) {
      const isRunning = entry.reply === undefined && entry.created === undefined
      if (entry.atMs >= oldestMs && entries.size <= KEPT_MAX && bytes <= KEPT_BYTES_MAX) return
      if (!isRunning) remove(name)
    }
  }

  return {
    begin(request) {
      prune()
      const name = nameOf(request)
      const fingerprint = fingerprintOf(request)
      const known = entries.get(name)
      if (known === undefined) {
        entries.set(name, { fingerprint, atMs: clock.monotonicMs() })
        return undefined
      }
      if (known.fingerprint !== fingerprint)
        throw new AdminError(
          'idempotency-conflict',
          'this Idempotency-Key was used for another request',
          'Use a new key for each change.',
        )
      if (known.created !== undefined)
        throw new AdminError(
          'secret-shown',
          `the first request with this key succeeded (${known.created}), and its secret was shown once`,
          'If the secret was lost, rotate it. The request was not performed again.',
        )
      if (known.reply !== undefined) return known.reply
      throw new AdminError('idempotency-running', 'a request with this key is running', 'Retry in a second.', {
        'retry-after': '1',
      })
    },
    finish(request, reply) {
      const entry = entries.get(nameOf(request))
      if (entry === undefined) return
      if ('created' in reply) entry.created = reply.created
      else {
        entry.reply = reply
        bytes += reply.text.length
      }
    },
    drop: (request) => remove(nameOf(request)),
  }
}

function fingerprintOf({ content }: IdempotentRequest): string {
  return hash('sha256', content.map((part) => hash('sha256', part, 'hex')).join(' '), 'hex')
}
