import { z } from 'zod'
import type {
  BlockSummary,
  HealthRecord,
  LifecycleRecord,
  RecentBlocks,
  RouteError,
  StatusRecord,
  TpsRecord,
} from '../execution-routes.ts'
import { type Same, same } from './same.ts'
import { conflictData, contentionData, hex, lifecycleFields, stage } from './stream.ts'

/** Schemas of the REST responses of the execution service. */

const count = z.int().min(0)

export const tpsRecord = z.strictObject({ tps: count.describe('0 until three blocks in a row have ended.') })
same<Same<z.output<typeof tpsRecord>, TpsRecord>>()

export const statusRecord = z.strictObject({
  status: z.enum(['healthy', 'degraded']),
  block_number: count,
  connected_clients: count,
  uptime_secs: count,
  last_event_age_secs: count,
  ring_seqno: count,
  oldest_seqno: count.describe('0 while the resume buffer is empty.'),
  newest_seqno: count,
})
same<Same<z.output<typeof statusRecord>, StatusRecord>>()

export const healthRecord = z.strictObject({
  jsonrpc: z.literal('2.0'),
  result: z.strictObject({ healthy: z.boolean(), number: count, last_event_age_secs: count }),
})
same<Same<z.output<typeof healthRecord>, HealthRecord>>()

const stageTimings = z.strictObject({
  Proposed: z.exactOptional(z.number()),
  Voted: z.exactOptional(z.number()),
  Finalized: z.exactOptional(z.number()),
  Verified: z.exactOptional(z.number()),
  Rejected: z.exactOptional(z.number()),
})
export const lifecycleRecord = z.strictObject({
  ...lifecycleFields,
  current_stage: stage,
  eth_block_hash: z.exactOptional(hex),
  stage_timings_ms: stageTimings.describe('Milliseconds since Proposed for each stage reached.'),
  execution_time_ms: z.exactOptional(z.number()),
  total_age_ms: z.number(),
})
same<Same<z.output<typeof lifecycleRecord>, LifecycleRecord>>()

const blockSummary = z.strictObject({
  block_number: count,
  tps: count.nullable().describe('Null where the two blocks before it are not known.'),
  contention: contentionData
    .omit({ top_contended_slots: true, top_contended_contracts: true, contract_edges: true })
    .nullable(),
  conflicts: conflictData.nullable(),
})
same<Same<z.output<typeof blockSummary>, BlockSummary>>()

export const recentBlocks = z.strictObject({
  blocks: z.array(blockSummary).readonly(),
  held: z
    .array(z.strictObject({ from: count, to: count }).readonly())
    .readonly()
    .describe('The block numbers that JSON-RPC can read, as ranges without gaps, oldest first.'),
})
same<Same<z.output<typeof recentBlocks>, RecentBlocks>>()

export const routeError = z.strictObject({ error: z.string() })
same<Same<z.output<typeof routeError>, RouteError>>()

/** A request over a limit: `error` names it in words. */
export const limitError = z.looseObject({
  error: z.string(),
  limit: z.string(),
  size: z.number(),
  cost: z.exactOptional(z.number()),
  retryAfterMs: z.exactOptional(z.number()),
})
