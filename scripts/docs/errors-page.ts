import type { ErrorEntry } from '../../src/contract/error-entry.ts'
import { ERRORS, TOKEN_REFUSALS } from '../../src/contract/errors.ts'
import { EXIT_CODES } from '../../src/contract/exit-codes.ts'
import { GENERATED, table } from './markdown.ts'

const REASONS: Record<(typeof TOKEN_REFUSALS)[number], string> = {
  missing:
    'the request has no token where this interface reads one: also a query key on WebSocket, or Authorization without Bearer',
  malformed: 'not a token, or its checksum is wrong: check for a typo or missing characters',
  unknown: 'well formed, but never issued here',
  revoked: 'revoked by the operator, or replaced by a rotation',
  expired: 'the subscription, the grace period of a rotation, or a ticket has expired',
  suspended: 'the operator has suspended the subscription or the customer',
  cancelled: 'the subscription was cancelled',
  conflicting: 'two different tokens in one request, or the same header twice',
  'not-in-plan': 'the token is valid, but its subscription does not include this product',
}

export function errorsPage(): string {
  const entries = Object.entries(ERRORS) as [string, ErrorEntry][]
  return (
    [
      '# Errors',
      GENERATED,
      'All errors that Sluice itself returns. Errors of upstream nodes pass through unchanged. A refused call is neither forwarded nor charged; what fails its checks, such as a body that is no JSON, is charged beyond 10 per second of a subscription, after a burst of 100; each 16 KiB of it count as one more. An error about the response to a forwarded call, which stays charged, has `data.charged`.',
      '## Exit codes of the command line',
      table(
        ['code', 'meaning', 'retry'],
        Object.entries(EXIT_CODES).map(([code, { meaning, retryable }]) => [code, meaning, retryable ? 'yes' : 'no']),
      ),
      '## Why a token is refused',
      'Status and headers are the same for every cause. `data.reason` names it, `data.found` lists where the request has a token (`x-token`, `authorization`, `x-api-key`, `query api-key`, `query api_key`, `ticket`; never the token), and `data.fix` is the way out of this cause on this interface. On gRPC reason and fix are in the status message.',
      table(
        ['reason', 'meaning'],
        TOKEN_REFUSALS.map((reason) => [`\`${reason}\``, REASONS[reason]]),
      ),
      ...entries.map(([code, entry]) => section(code, entry)),
    ].join('\n\n') + '\n'
  )
}

function section(code: string, entry: ErrorEntry): string {
  const facts: [string, string | number | undefined][] = [
    ['HTTP status', entry.http],
    ['JSON-RPC code', entry.jsonRpc],
    ['gRPC status', entry.grpc],
    ['WebSocket close', entry.close],
    ['exit code', entry.exit],
    ['retry', entry.retryable ? 'yes' : 'no'],
  ]
  return [
    `## ${code}`,
    `${entry.sentence}`,
    `**Fix:** ${entry.fix}`,
    facts
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `- ${name}: ${value}`)
      .join('\n'),
  ].join('\n\n')
}
