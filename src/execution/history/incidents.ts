import type { HistoryIncident, HistoryIncidentCause } from '../../contract/execution-history.ts'

/** An incident with the number under which it is stored. */
export type StoredIncident = { readonly number: number; readonly incident: HistoryIncident }

type Kind = HistoryIncidentCause['kind']

/** Incidents of each kind; above that the oldest are dropped. */
const INCIDENTS_PER_KIND_MAX = 50
/** Frames dropped within this time are one incident. */
const SAME_BACKPRESSURE_MS = 10_000

/** The last incidents of each kind. */
export class Incidents {
  readonly #byKind = new Map<Kind, StoredIncident[]>()
  #changed = new Map<number, StoredIncident>()
  #last = 0

  /** Oldest first. */
  list(): HistoryIncident[] {
    const all = [...this.#byKind.values()].flat()
    return all.toSorted((a, b) => a.incident.from_ms - b.incident.from_ms).map(({ incident }) => incident)
  }

  add(incident: HistoryIncident): void {
    this.#last += 1
    this.#put({ number: this.#last, incident })
  }

  /** An incident that lasts; nothing where one of this kind does already. */
  begin(cause: HistoryIncidentCause, fromMs: number): void {
    if (this.#lasting(cause.kind) === undefined) this.add({ from_ms: fromMs, to_ms: null, ...cause })
  }

  end(kind: Kind, toMs: number): void {
    const lasting = this.#lasting(kind)
    if (lasting === undefined) return
    const { number, incident } = lasting
    this.#put({ number, incident: { ...incident, to_ms: Math.max(incident.from_ms, toMs) } })
  }

  framesDropped(frames: number, atMs: number): void {
    const last = this.#byKind.get('backpressure')?.at(-1)
    const before = last?.incident
    const isSame = before?.to_ms != null && Math.abs(atMs - before.to_ms) <= SAME_BACKPRESSURE_MS
    if (last === undefined || before?.kind !== 'backpressure' || !isSame)
      return this.add({ from_ms: atMs, to_ms: atMs, kind: 'backpressure', frames_dropped: frames })
    const to_ms = Math.max(before.from_ms, atMs)
    this.#put({ ...last, incident: { ...before, to_ms, frames_dropped: before.frames_dropped + frames } })
  }

  /** Those that changed since they were taken. */
  takeChanged(): StoredIncident[] {
    const taken = [...this.#changed.values()]
    this.#changed = new Map()
    return taken
  }

  /** These will be taken again, unless they changed or were dropped meanwhile. */
  markChanged(stored: readonly StoredIncident[]): void {
    for (const one of stored) {
      const isKept = this.#byKind.get(one.incident.kind)?.includes(one) ?? false
      if (isKept) this.#changed.set(one.number, one)
    }
  }

  restore(stored: StoredIncident): void {
    this.#put(stored)
    this.#changed.delete(stored.number)
    this.#last = Math.max(this.#last, stored.number)
  }

  /** Incidents of blocks are dropped: the blocks are no longer there. All others will be taken again. */
  forgetBlocks(): void {
    this.#byKind.delete('rejection')
    this.#changed = new Map([...this.#byKind.values()].flat().map((stored) => [stored.number, stored]))
  }

  #lasting(kind: Kind): StoredIncident | undefined {
    return this.#byKind.get(kind)?.find(({ incident }) => incident.to_ms === null)
  }

  #put(stored: StoredIncident): void {
    const { kind } = stored.incident
    const ofKind = this.#byKind.get(kind) ?? []
    this.#byKind.set(kind, ofKind)
    const at = ofKind.findIndex(({ number }) => number === stored.number)
    if (at === -1) ofKind.push(stored)
    else ofKind[at] = stored
    this.#changed.set(stored.number, stored)
    if (ofKind.length > INCIDENTS_PER_KIND_MAX) this.#changed.delete(ofKind.shift()?.number as number)
  }
}
