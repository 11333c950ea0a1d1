import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import type { Clock } from '../../core/clock.ts'
import type { EndpointResponse } from './endpoint.ts'
import { type AccountReports, unavailable } from './reports.ts'
import { shredsOf } from './whoami.ts'

type ShredsDeps = {
  readonly access: Pick<Access, 'snapshot'>
  readonly reports: Pick<AccountReports, 'delivery'>
  readonly clock: Pick<Clock, 'nowMs'>
}

/** `GET /v1/shreds`: the destination of the caller's shreds, and what was sent to it in the last 24 hours. */
export async function respondWithShreds(
  { access, reports, clock }: ShredsDeps,
  { subscription }: Caller,
  requestId: string,
): Promise<EndpointResponse> {
  const report = await reports.delivery(subscription.id)
  if (!report.ok) return unavailable(report.reason, requestId)
  const { ok: _ok, ...sent } = report
  return { status: 200, body: { ...shredsOf(access, subscription.id, clock.nowMs()), ...sent } }
}
