import type { BillingOutcome } from '../../access/store/billing/store.ts'
import type { BillingEvent } from '../../access/store/billing/tables.ts'
import type { Lane, Lanes } from './lanes.ts'
import type { BatchResult, BillingSink, EventResult } from './sink.ts'

/** How the lanes of a group were sent. */
type SentLanes = {
  readonly outcomes: readonly BillingOutcome[]
  /** Whether the sink settled an event for good. */
  readonly isAccepting: boolean
  /** The first failure. */
  readonly failed: Failed | undefined
}

type Failed = Extract<BatchResult, { kind: 'failed' }>

/** How requests are sent: to the sink, until no further one is to begin. */
type Sending = { readonly sink: BillingSink; isOver(): boolean }

/** What is known of the events of a batch after an attempt. */
type Attempt = {
  readonly results: readonly (EventResult | undefined)[]
  readonly failed?: Failed
}

const AGAIN: EventResult = { kind: 'again' }

/** Sends the lanes of a group at the same time, and records which of them fail. */
export async function sendLanes(group: readonly Lane[], lanes: Lanes, sending: Sending): Promise<SentLanes> {
  const byLane = await Promise.all(group.map((lane) => sendLane(lane, sending)))
  const [batches, attempts] = [group.flatMap((lane) => lane.batches), byLane.flat()]
  const isAccepting = attempts.some(({ results }) => results.some(isFinal))
  for (const [at, lane] of group.entries()) {
    const failed = failureOf(byLane[at] ?? [])
    // Lanes that fail come after the others. Where no lane gets a response they keep their place: the sink is away, and further events would be in
    // doubt with each attempt.
    if (failed === undefined || isAccepting || failed.isCounted === false) lanes.record(lane, failed !== undefined)
  }
  const outcomes = attempts.flatMap((attempt, at) => outcomesOf(batches[at] ?? [], attempt, sending.sink))
  return { outcomes, isAccepting, failed: failureOf(attempts) }
}

function failureOf(attempts: readonly Attempt[]): Failed | undefined {
  return attempts.find(({ failed }) => failed !== undefined)?.failed
}

/** Sends events as one batch, or in halves where the sink refuses it without naming the event. */
async function sendBatch(batch: readonly BillingEvent[], sending: Sending): Promise<Attempt> {
  const result = await sending.sink.send(batch)
  if (result.kind === 'settled') return { results: result.results }
  if (result.kind === 'failed')
    return { results: batch.map(() => (result.isCounted === false ? AGAIN : undefined)), failed: result }
  if (batch.length === 1) return { results: [{ kind: 'refused', reason: result.reason }] }
  const middle = Math.ceil(batch.length / 2)
  const [left, right] = [batch.slice(0, middle), batch.slice(middle)]
  // The first half is sent at any time, so that each attempt gets to the result of an event.
  const first = await sendBatch(left, sending)
  const isOver = first.failed !== undefined || sending.isOver()
  const second = isOver ? { results: right.map(() => AGAIN) } : await sendBatch(right, sending)
  const { failed = second.failed } = first
  return { results: [...first.results, ...second.results], ...(failed === undefined ? {} : { failed }) }
}

/** Sends batches one after another, up to the first failure and as long as there is time. */
async function sendLane({ batches }: Lane, sending: Sending): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  let hasFailed = false
  for (const batch of batches) {
    const isSkipped = hasFailed || sending.isOver()
    const attempt: Attempt = isSkipped ? { results: batch.map(() => AGAIN) } : await sendBatch(batch, sending)
    attempts.push(attempt)
    hasFailed ||= attempt.failed !== undefined
  }
  return attempts
}

/**
 * Events without a result keep what was recorded before the attempt: it is not known whether they were counted. One that is refused after an attempt in doubt
 * stays in doubt where the sink forgets ids: a retry by the operator may come later than that.
 */
function outcomesOf(
  batch: readonly BillingEvent[],
  { results }: Attempt,
  { repeatWithinMs }: Pick<BillingSink, 'repeatWithinMs'>,
): BillingOutcome[] {
  return batch.flatMap(({ eventKey, doubtSince }, at): BillingOutcome[] => {
    const result = results[at]
    if (result?.kind === 'sent') return [{ eventKey, state: 'sent', doubtSince: null, reason: null }]
    if (result?.kind === 'refused')
      return [
        {
          eventKey,
          state: 'dead',
          doubtSince: repeatWithinMs === undefined ? null : doubtSince,
          reason: result.reason,
        },
      ]
    // As before the attempt.
    return result?.kind === 'again' ? [{ eventKey, state: 'pending', doubtSince, reason: null }] : []
  })
}

function isFinal(result: EventResult | undefined): boolean {
  return result?.kind === 'sent' || result?.kind === 'refused'
}
