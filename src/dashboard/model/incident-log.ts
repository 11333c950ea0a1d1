import type { GapEvent } from '../client/stream-event.ts'
import { formatCount } from './format.ts'

export type IncidentKind = 'gap' | 'lag' | 'rejection' | 'connection'
/** `good`: a problem is over. */
export type Severity = 'good' | 'note' | 'warn' | 'bad'

export type Incident = {
  readonly id: number
  readonly atMs: number
  readonly kind: IncidentKind
  readonly severity: Severity
  readonly text: string
  readonly block: number | undefined
}

export type IncidentLog = {
  add(incident: Omit<Incident, 'id' | 'block'> & { readonly block?: number }): void
  /** Newest first. */
  list(): readonly Incident[]
  /** Since the page was opened, including those no longer listed. */
  count(kind: IncidentKind): number
}

/** Older incidents are dropped; the counts stay. */
const INCIDENTS_MAX = 200

export function createIncidentLog(): IncidentLog {
  let incidents: readonly Incident[] = []
  let total = 0
  const counts = new Map<IncidentKind, number>()
  return {
    add(incident) {
      total += 1
      counts.set(incident.kind, (counts.get(incident.kind) ?? 0) + 1)
      incidents = [{ block: undefined, ...incident, id: total }, ...incidents].slice(0, INCIDENTS_MAX)
    },
    list: () => incidents,
    count: (kind) => counts.get(kind) ?? 0,
  }
}

/** What is missing and why, in one sentence. */
export function gapText({ reason, frames, warning }: GapEvent): string {
  switch (reason) {
    case 'source': {
      if (warning?.type !== 'ring_gap') return 'The source lost events.'
      const lost = warning.to_seqno - warning.from_seqno + 1
      return `The source lost ${formatCount(lost)} events (ring ${warning.from_seqno} to ${warning.to_seqno}); ${formatCount(warning.blocks_dropped)} blocks have no figures.`
    }
    case 'restart':
      return 'The node was restarted: windows and counters start again.'
    case 'slow':
      return `This page was too slow: the service dropped ${formatCount(frames)} frames for it.`
    case 'window': {
      if (warning?.type !== 'resume_out_of_window')
        return 'Reconnected without a cursor: the time in between is missing.'
      return `The service cannot resume (${WINDOW_REASONS[warning.reason]}): continued from a snapshot.`
    }
    case 'buffer':
      return `This page dropped ${formatCount(frames)} unread frames because its buffer was full.`
  }
}

const WINDOW_REASONS = {
  too_old: 'the cursor is older than its buffer',
  ahead: 'the cursor is ahead of the stream',
  invalid: 'the cursor is invalid',
  not_recorded: 'these events were not recorded',
} as const

/** Why a connection was closed. */
export function closeText({ code, reason }: { code: number; reason: string }): string {
  const known = CLOSE_REASONS[code] ?? `code ${code}`
  return reason === '' || known.includes(reason) ? known : `${known}: ${reason}`
}

const CLOSE_REASONS: Readonly<Record<number, string>> = {
  1000: 'closed',
  1006: 'connection lost',
  1008: 'refused by policy',
  1012: 'service restart',
  4401: 'token expired or revoked',
}
