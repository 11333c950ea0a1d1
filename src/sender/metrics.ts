import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { RefusalCode, SenderLimitName } from './accept/refusal.ts'
import type { Receipt } from './receipts/receipt.ts'
import { pathsThatTook } from './receipts/stats.ts'

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
  'knownSignaturesMax',
  'readsPerAddressPerSecond',
  'waitersMax',
  'waitersPerAddressMax',
] as const satisfies SenderLimitName[]
const STATES = ['landed', 'expired', 'ended', 'unknown'] as const
const RESPONSES = ['taken', 'refused', 'failed', 'busy'] as const
const DISPATCH_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1]
const LAND_BUCKETS = [0.1, 0.2, 0.4, 0.8, 1.2, 2, 3, 5, 8, 13, 20, 30, 60]

export type SenderMetrics = ReturnType<typeof senderMetrics>

/** The metrics of the sender. The values of the label `path` are the path names of the configuration. */
export function senderMetrics(
  registry: MetricsRegistry,
  pathNames: readonly string[],
  read: {
    pending(): number
    receipts(): number
    knownSignatures(): number
    connections(): number
    tipEventsLost(): number
  },
) {
  const path = pathNames
  const received = registry.counter('sluice_sender_received_total', 'Transactions received, by result of the checks.', {
    labels: { result: RESULTS },
  })
  const limited = registry.counter(
    'sluice_sender_limited_total',
    'Requests refused because a limit was reached, by limit.',
    { labels: { limit: LIMITS } },
  )
  const settled = registry.counter(
    'sluice_sender_finished_total',
    'Accepted transactions that reached a final state, by state; one that lands after it ended or expired counts as both.',
    { labels: { state: STATES } },
  )
  const attempts = registry.counter(
    'sluice_sender_attempts_total',
    'Times a transaction was sent on a path, by response.',
    { labels: { path, response: RESPONSES }, former: { labels: { response: 'answer' } } },
  )
  const firstResponse = registry.histogram(
    'sluice_sender_first_response_seconds',
    'Time from accepting a transaction to the first response of a path.',
    { labels: { path }, buckets: DISPATCH_BUCKETS, former: { name: 'sluice_sender_first_answer_seconds' } },
  )
  const firstDispatch = registry.histogram(
    'sluice_sender_first_dispatch_seconds',
    'Time from receiving a request to sending its transaction on the first path.',
    { buckets: DISPATCH_BUCKETS },
  )
  const timeToLand = registry.histogram(
    'sluice_sender_time_to_land_seconds',
    'Time from accepting a transaction to seeing it in a block, for each path that took it.',
    { labels: { path }, buckets: LAND_BUCKETS },
  )
  const tips = registry.counter('sluice_sender_tip_lamports_total', 'Tips of transactions that landed and succeeded.')
  registry.counter(
    'sluice_sender_tip_events_lost_total',
    'What became of transactions and is not in the tip ledger, because too much waited for its file.',
    { read: read.tipEventsLost },
  )
  const journalFailures = registry.counter(
    'sluice_sender_journal_failures_total',
    'Failed writes to the journal of accepted transactions.',
  )
  const gauge = (name: string, help: string, value: () => number) => registry.gauge(name, help, { read: value })
  gauge('sluice_sender_pending', 'Transactions accepted and not yet settled.', read.pending)
  gauge('sluice_sender_receipts', 'Receipts in memory.', read.receipts)
  gauge(
    'sluice_sender_known_signatures',
    'Signatures of settled transactions whose receipts were removed early, because of receiptsMax.',
    read.knownSignatures,
  )
  gauge('sluice_sender_quic_connections', 'Open QUIC connections to leaders.', read.connections)
  const [isFirstLoss, isFirstLanding, isFirstTip] = [createFirsts(), createFirsts(), createFirsts()]
  return {
    received: (result: 'accepted' | 'duplicate' | RefusalCode) =>
      received.inc({ result: result as (typeof RESULTS)[number] }),
    limited: (limit: SenderLimitName) => limited.inc({ limit }),
    /** Called for each settled state of a receipt. Counters are not counted back: one counts its landing, and one that it ended without. */
    settled(receipt: Receipt) {
      const { state, landed, tip } = receipt
      if (state === 'accepted' || state === 'sent') return
      if (landed === undefined) {
        if (isFirstLoss(receipt)) settled.inc({ state })
        return
      }
      if (landed.error === null && isFirstTip(receipt)) tips.inc({}, Number(tip?.lamports ?? 0n))
      if (!isFirstLanding(receipt)) return
      settled.inc({ state: 'landed' })
      const tookMs = landed.unixMs - receipt.acceptedUnixMs
      for (const on of pathsThatTook(receipt)) timeToLand.observe(tookMs / 1000, { path: on })
    },
    attempt: (on: string, response: (typeof RESPONSES)[number]) => attempts.inc({ path: on, response }),
    firstResponse: (on: string, ms: number) => firstResponse.observe(ms / 1000, { path: on }),
    firstDispatch: (ms: number) => firstDispatch.observe(ms / 1000),
    journalFailed: () => journalFailures.inc(),
  }
}

/** Whether it is the first call for the receipt. */
function createFirsts(): (receipt: Receipt) => boolean {
  const seen = new WeakSet<Receipt>()
  return (receipt) => !seen.has(receipt) && seen.add(receipt).has(receipt)
}
