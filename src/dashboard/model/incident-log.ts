import type { HistoryIncident } from '../../contract/execution-history.ts'
import { formatAge, formatCount } from '../../ui/format.ts'
import type { GapEvent } from '../client/stream-event.ts'

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
  /** The kind and beginning of an incident of the history. The same incident has the same key in every response, also when it has ended meanwhile. */
  readonly historyKey?: string
}

export type IncidentLog = {
  add(incident: Omit<Incident, 'id' | 'block'> & { readonly block?: number }): void
  /** Adds incidents of the history. One that is listed already is not added; it gets the newer text. */
  addHistory(incidents: readonly Omit<Incident, 'id'>[]): void
  /** Newest first. */
  list(): readonly Incident[]
  /** Including those no longer listed. */
  count(kind: IncidentKind): number
}

/** Older incidents are dropped; the counts stay. */
const INCIDENTS_MAX = 200
/** Two incidents of one text are further apart than the clocks of page and service, which are compared over the network. */
const CLOCKS_APART_MS = 2000

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
    addHistory(history) {
      const listed = incidents
      const added: Incident[] = []
      for (const incident of history) {
        const same = listed.find((one) => isSame(one, incident))
        if (same === undefined) {
          total += 1
          counts.set(incident.kind, (counts.get(incident.kind) ?? 0) + 1)
          added.push({ ...incident, id: total })
        } else if (same.text !== incident.text) {
          incidents = incidents.map((one) => (one === same ? { ...incident, id: same.id } : one))
        }
      }
      incidents = [...incidents, ...added].toSorted((a, b) => b.atMs - a.atMs || b.id - a.id).slice(0, INCIDENTS_MAX)
    },
    list: () => incidents,
    count: (kind) => counts.get(kind) ?? 0,
  }
}

/** Whether an incident of the history is this one. What the page saw itself has the time of the page, which is not exactly that of the service. */
function isSame(listed: Incident, { kind, atMs, block, text, historyKey }: Omit<Incident, 'id'>): boolean {
  if (listed.kind !== kind) return false
  if (kind === 'rejection') return listed.block === block
  if (listed.historyKey !== undefined) return listed.historyKey === historyKey
  return listed.text === text && Math.abs(listed.atMs - atMs) < CLOCKS_APART_MS
}

/** `aheadMs`: by how much the clock of this device is ahead of the clock of the service. */
export function historyIncident(incident: HistoryIncident, aheadMs: number): Omit<Incident, 'id'> {
  const { from_ms, to_ms } = incident
  const base = { atMs: from_ms + aheadMs, block: undefined, historyKey: `${incident.kind} ${from_ms}` }
  const lasted = to_ms === null ? 'It has not ended.' : `It lasted ${formatAge(to_ms - from_ms)}.`
  switch (incident.kind) {
    case 'source_silent':
      return { ...base, kind: 'lag', severity: 'bad', text: `Very late: no data from the node. ${lasted}` }
    case 'service_stopped':
      return { ...base, kind: 'gap', severity: 'warn', text: `The service did not run. ${lasted}` }
    case 'ring_gap':
      return { ...base, kind: 'gap', severity: 'bad', text: lostText(incident.events_lost, incident.blocks_dropped) }
    case 'ring_restart':
      return { ...base, kind: 'gap', severity: 'warn', text: RESTART_TEXT }
    case 'backpressure': {
      const text = `Clients that read too slowly missed ${formatCount(incident.frames_dropped)} messages.`
      return { ...base, kind: 'connection', severity: 'note', text }
    }
    case 'rejection':
      return { ...base, kind: 'rejection', severity: 'note', text: REJECTED_TEXT, block: incident.block_number }
  }
}

/** The number of the block follows. Another proposal was finalized, or the block is invalid: Lifecycle frames have no reason. */
export const REJECTED_TEXT = 'A proposal was rejected: block'
const RESTART_TEXT = 'The node was restarted: counters start again.'

function lostText(events: number, blocks: number): string {
  const without = blocks === 1 ? '1 block has' : `${formatCount(blocks)} blocks have`
  return `The service lost ${formatCount(events)} events of the node: ${without} no figures.`
}

/** What is missing and why, in one sentence. */
export function gapText({ reason, frames, warning }: GapEvent): string {
  switch (reason) {
    case 'source': {
      if (warning?.type !== 'ring_gap') return 'Events of the node were lost.'
      return lostText(warning.to_seqno - warning.from_seqno + 1, warning.blocks_dropped)
    }
    case 'restart':
      return RESTART_TEXT
    case 'slow':
      return `This page was too slow: the service left out ${formatCount(frames)} messages.`
    case 'window': {
      if (warning?.type !== 'resume_out_of_window')
        return 'Connected again without a position: the time in between is missing.'
      return `Not everything could be fetched again (${WINDOW_REASONS[warning.reason]}): the time in between is missing.`
    }
    case 'buffer':
      return `This page was too slow: it dropped ${formatCount(frames)} messages.`
  }
}

const WINDOW_REASONS = {
  too_old: 'it was too long ago',
  ahead: 'the service started again',
  invalid: 'the position is invalid',
  not_recorded: 'it was not recorded',
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
