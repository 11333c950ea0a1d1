import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { isoTime } from '../../contract/wire-json.ts'
import type { Clock } from '../../core/clock.ts'
import type { AllConnections } from './all-connections.ts'
import type { EndpointResponse } from './endpoint.ts'
import type { AccountReports } from './reports.ts'
import { whoami } from './whoami.ts'

type AccountDeps = {
  readonly access: Pick<Access, 'quota' | 'permits' | 'snapshot'>
  readonly connections: Pick<AllConnections, 'of'>
  readonly clock: Clock
  readonly reports: Pick<AccountReports, 'tokens'>
  readonly addresses?: Readonly<Record<string, string>> | undefined
}

/** `GET /v1/account`: what the account page shows first. While the store is busy `tokens` is null; everything else is in memory. */
export async function accountOf(deps: AccountDeps, caller: Caller): Promise<EndpointResponse> {
  const { access, connections, clock, reports, addresses = {} } = deps
  const [own, tokens] = await Promise.all([
    connections.of(caller.subscription.id),
    reports.tokens(caller.subscription.id),
  ])
  const { token, customer } = access.snapshot().byDigest(caller.tokenSha256) ?? {}
  return {
    status: 200,
    body: {
      customer: customer?.name ?? null,
      ...whoami(access, caller, clock.nowMs()),
      connections: own.length,
      token: token === undefined ? null : { last4: token.last4, valid_until: isoTime(token.notAfter) },
      tokens: tokens.ok ? tokens.tokens : null,
      endpoints: addresses,
    },
  }
}
