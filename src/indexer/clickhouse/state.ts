import type { SlotRange } from '../ingest/slot-ranges.ts'
import type { ClickHouseLink } from './link.ts'

/** Progress of the writer, stored in one row of `_progress`. */
export type ClickHouseState = {
  /** Grows with every change; the row with the highest version is valid. */
  readonly version: number
  readonly ranges: readonly SlotRange[]
  readonly lastBatch: string
  readonly finalizedSlot: number
  readonly tipSlot: number
  /** Raised whenever rows were deleted: the server remembers the insert tokens of deleted rows and would skip the same rows. */
  readonly generation: number
  /** A write that has begun: rows of these slots may be in the tables without being covered by `ranges`. */
  readonly intent: { readonly name: string; readonly range: SlotRange } | undefined
}

const NOTHING: ClickHouseState = {
  version: 0,
  ranges: [],
  lastBatch: '',
  finalizedSlot: 0,
  tipSlot: 0,
  generation: 0,
  intent: undefined,
}

export async function readClickHouseState(link: ClickHouseLink, base: string): Promise<ClickHouseState> {
  const [row] = await link.rows(
    `SELECT version, last_batch, finalized_slot, tip_slot, from_slots, to_slots, generation, intent, intent_from, intent_to
     FROM ${base}._progress ORDER BY version DESC LIMIT 1`,
  )
  if (row === undefined) return NOTHING
  const [version, lastBatch, finalizedSlot, tipSlot, froms, tos, generation, intent, from, to] = row
  return {
    version: Number(version),
    lastBatch: String(lastBatch),
    finalizedSlot: Number(finalizedSlot),
    tipSlot: Number(tipSlot),
    ranges: (froms as string[]).map((each, at) => ({ from: Number(each), to: Number((tos as string[])[at]) })),
    generation: Number(generation),
    intent: Number(to) === 0 ? undefined : { name: String(intent), range: { from: Number(from), to: Number(to) } },
  }
}

export async function saveClickHouseState(
  link: ClickHouseLink,
  base: string,
  state: ClickHouseState,
  nowMs: number,
): Promise<void> {
  const { intent, ranges } = state
  const row = {
    id: 0,
    version: state.version,
    last_batch: state.lastBatch,
    finalized_slot: state.finalizedSlot,
    tip_slot: state.tipSlot,
    written_at: Math.floor(nowMs / 1000),
    from_slots: ranges.map(({ from }) => from),
    to_slots: ranges.map(({ to }) => to),
    generation: state.generation,
    intent: intent?.name ?? '',
    intent_from: intent?.range.from ?? 0,
    intent_to: intent?.range.to ?? 0,
  }
  await link.insert(`INSERT INTO ${base}._progress FORMAT JSONEachRow`, JSON.stringify(row))
}
