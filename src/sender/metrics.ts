import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { RefusalCode, SenderLimitName } from './accept/refusal.ts'

const RESULTS = [
  'accepted',
  'duplicate',
  'invalid-params',
  'signature-invalid',
  'signature-count',
  'tip-missing',
  'tip-too-small',
  'tip-through-lookup-table',
  'blockhash-expired',
  'payer-cannot-pay',
  'nonce-invalid',
  'no-path',
  'not-recorded',
  'rate-limited',
] as const
const LIMITS = [
  'perAddressPerSecond',
  'signaturesPerAddressPerSecond',
  'perPayerPerSecond',
  'checkingMax',
  'checkDelayMsMax',
  'pendingMax',
  'pendingPerAddressMax',
  'pendingPerPayerMax',
  'readsPerAddressPerSecond',
  'waitersMax',
  'waitersPerAddressMax',
] as const satisfies SenderLimitName[]
const STATES = ['landed', 'expired', 'ended', 'unknown'] as const
const RESPONSES = ['taken', 'refused', 'failed', 'busy'] as const
const DISPATCH_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1]
const LAND_BUCKETS = [0.1, 0.2, 0.4, 0.8, 1.2, 2, 3, 5, 8, 13, 20, 30, 60]

/** What the sender tells Prometheus. Path names are labels, from the config and nowhere else. */
export function senderMetrics(
  registry: MetricsRegistry,
  pathNames: readonly string[],
  read: { pending(): number; receipts(): number; connections(): number },
) {
  const path = pathNames
  const received = registry.counter({
    name: 'sluice_sender_received_total',
    help: 'Transactions received, by what became of them at the door.',
    labels: { result: RESULTS },
  })
  const limited = registry.counter({
    name: 'sluice_sender_limited_total',
    help: 'Requests refused because a limit was reached, by limit.',
    labels: { limit: LIMITS },
  })
  const finished = registry.counter({
    name: 'sluice_sender_finished_total',
    help: 'Accepted transactions that came to an end, by how.',
    labels: { state: STATES },
  })
  const attempts = registry.counter({
    name: 'sluice_sender_attempts_total',
    help: 'Times a transaction was sent on a path, by the answer.',
    labels: { path, response: RESPONSES },
  })
  const firstResponse = registry.histogram({
    name: 'sluice_sender_first_answer_seconds',
    help: 'From accepting a transaction to the first answer of a path.',
    labels: { path },
    buckets: DISPATCH_BUCKETS,
  })
  const firstDispatch = registry.histogram({
    name: 'sluice_sender_first_dispatch_seconds',
    help: 'From the end of a request to handing its transaction to the paths.',
    buckets: DISPATCH_BUCKETS,
  })
  const timeToLand = registry.histogram({
    name: 'sluice_sender_time_to_land_seconds',
    help: 'From accepting a transaction to seeing it in a block, for each path that had taken it.',
    labels: { path },
    buckets: LAND_BUCKETS,
  })
  const tips = registry.counter({
    name: 'sluice_sender_tip_lamports_total',
    help: 'Tips of transactions that landed and succeeded.',
  })
  const journalFailures = registry.counter({
    name: 'sluice_sender_journal_failures_total',
    help: 'Writes to the journal of accepted transactions that failed.',
  })
  const gauge = (name: string, help: string, value: () => number) => registry.gauge({ name, help, read: value })
  gauge('sluice_sender_pending', 'Transactions on their way.', read.pending)
  gauge('sluice_sender_receipts', 'Receipts kept.', read.receipts)
  gauge('sluice_sender_quic_connections', 'Connections to leaders that can carry transactions.', read.connections)
  return {
    received: (result: 'accepted' | 'duplicate' | RefusalCode) =>
      received.inc({ result: result as (typeof RESULTS)[number] }),
    limited: (limit: SenderLimitName) => limited.inc({ limit }),
    finished: (state: (typeof STATES)[number]) => finished.inc({ state }),
    attempt: (on: string, response: (typeof RESPONSES)[number]) => attempts.inc({ path: on, response }),
    firstResponse: (on: string, ms: number) => firstResponse.observe(ms / 1000, { path: on }),
    firstDispatch: (ms: number) => firstDispatch.observe(ms / 1000),
    timeToLand: (on: string, ms: number) => timeToLand.observe(ms / 1000, { path: on }),
    tip: (lamports: bigint) => tips.inc({}, Number(lamports)),
    journalFailed: () => journalFailures.inc(),
  }
}
