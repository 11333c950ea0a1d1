export type IncidentKind = 'gap' | 'lag' | 'rejection' | 'connection'
/** `good`: something is well again. */
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
  /** Since the page was opened, those no longer listed included. */
  count(kind: IncidentKind): number
}

/** Older ones are forgotten; the counts stay. */
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
