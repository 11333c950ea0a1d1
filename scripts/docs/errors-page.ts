import type { ErrorEntry } from '../../src/contract/error-entry.ts'
import { ERRORS, TOKEN_REFUSALS } from '../../src/contract/errors.ts'
import { EXIT_CODES } from '../../src/contract/exit-codes.ts'
import { GENERATED, table } from './markdown.ts'

const REASONS: Record<(typeof TOKEN_REFUSALS)[number], string> = {
  missing: 'no carrier of the token was found on this interface',
  malformed: 'not a token, or its checksum is wrong: look for a typo or a cut',
  unknown: 'well formed, but never issued here',
  revoked: 'ended by the operator, or replaced by a rotation',
  expired: 'the subscription or the grace of a rotation has run out',
  suspended: 'the operator has suspended the subscription or the customer',
  cancelled: 'the subscription has ended',
  conflicting: 'two carriers that differ, or one carrier twice',
  'not-in-plan': 'the token is good, but its subscription does not include this product',
}

export function errorsPage(): string {
  const entries = Object.entries(ERRORS) as [string, ErrorEntry][]
  return (
    [
      '# Errors',
      GENERATED,
      'Every error Sluice itself makes. Errors of an upstream node pass through untouched. A refused call was neither forwarded nor charged.',
      '## Exit codes of the command line',
      table(
        ['code', 'meaning', 'try again'],
        Object.entries(EXIT_CODES).map(([code, { meaning, retryable }]) => [code, meaning, retryable ? 'yes' : 'no']),
      ),
      '## Why a token is refused',
      'Status and headers are the same for every cause; `data.reason` names it.',
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
    ['try again', entry.retryable ? 'yes' : 'no'],
  ]
  return [
    `## ${code}`,
    `${entry.sentence}`,
    `**What to do:** ${entry.fix}`,
    facts
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `- ${name}: ${value}`)
      .join('\n'),
  ].join('\n\n')
}
