import { lookUp } from '../../../../access/provisioning/context.ts'
import { type IssuedToken, issueToken, revokeTokens, rotateToken } from '../../../../access/provisioning/tokens.ts'
import type { Subscription, Token } from '../../../../access/store/model.ts'
import { displayToken } from '../../../../access/token.ts'
import { isoTime } from '../../../../contract/wire-json.ts'
import { parseDuration } from '../../../../core/bytes.ts'
import { ServiceError } from '../../../../core/error.ts'
import { printTime } from '../../../dates.ts'
import type { CliContext, CutFlags, ListFlags, SecretFlags } from '../../../define.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printJson, printList, write } from '../../../output/print.ts'
import { secretLocation } from '../../../output/secret-output.ts'
import { done, openSession } from '../../../session.ts'

export async function issueTokenCommand(this: CliContext, flags: SecretFlags, subscription: string): Promise<void> {
  using output = secretLocation(this, flags)
  await using session = await openSession(this, flags)
  const issued = await issueToken(session.provisioning(flags), { subscription })
  showIssued(this, flags, output.reveal, issued)
}

export async function rotateTokenCommand(
  this: CliContext,
  flags: SecretFlags & { grace?: string; yes?: boolean },
  subscription: string,
): Promise<void> {
  const graceMs = flags.grace === undefined ? 0 : parseDuration(flags.grace)
  if (graceMs === undefined)
    throw new ServiceError('invalid-value', `"${flags.grace}" is not a time span: write 1h, 30m or 2d`)
  using output = secretLocation(this, flags)
  await using session = await openSession(this, flags)
  if (graceMs === 0) {
    const found = await lookUp(session.store, 'subscriptions', subscription)
    await confirmCut(
      this,
      flags,
      `this revokes the present token of ${found.name} at once and closes its open streams within 5 s`,
    )
  }
  const issued = await rotateToken(session.provisioning(flags), { subscription, graceMs })
  showIssued(this, flags, output.reveal, issued)
  if (flags.json !== true) reportEnded(this, issued.ended)
}

export async function revokeTokenCommand(this: CliContext, flags: CutFlags, subscription: string): Promise<void> {
  await using session = await openSession(this, flags)
  const found = await lookUp(session.store, 'subscriptions', subscription)
  await confirmCut(
    this,
    flags,
    `this revokes the token of ${found.name} at once and closes its open streams within 5 s`,
  )
  const { ended } = await revokeTokens(session.provisioning(flags), { subscription: found.id })
  if (flags.json === true)
    printJson(this, {
      subscription: found.name,
      subscriptionId: found.id,
      revoked: ended.map(({ id, last4 }) => ({ id, last4 })),
    })
  else done(this, flags, `token ${ended.map((token) => displayToken(token.last4)).join(', ')} of ${found.name} revoked`)
}

export async function listTokens(this: CliContext, flags: ListFlags, subscription?: string): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const only = subscription === undefined ? undefined : await lookUp(session.store, 'subscriptions', subscription)
  const tokens =
    only === undefined
      ? await session.store.list('tokens')
      : await session.store.find('tokens', { subscriptionId: only.id })
  const names = new Map((await session.store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
  const lastUsed = new Map<string, number | undefined>()
  for (const token of tokens) lastUsed.set(token.id, await session.store.lastUsed(token.id))
  printList(this, flags, {
    rows: tokens.toSorted((a, b) => b.createdAt - a.createdAt),
    empty: 'no tokens',
    columns: [
      { title: 'TOKEN', value: (row) => displayToken(row.last4) },
      { title: 'SUBSCRIPTION', value: (row) => names.get(row.subscriptionId) ?? row.subscriptionId },
      { title: 'STATE', value: (row) => row.state },
      { title: 'CREATED AT', value: (row) => isoTime(row.createdAt), show: (row) => printTime(row.createdAt) },
      { title: 'CREATED BY', value: (row) => row.createdBy, wide: true },
      {
        title: 'NOT AFTER',
        value: (row) => isoTime(row.notAfter),
        show: (row) => (row.notAfter === null ? '-' : printTime(row.notAfter)),
      },
      {
        title: 'LAST USED AT',
        value: (row) => isoTime(lastUsed.get(row.id)),
        show: (row) => printMaybe(lastUsed.get(row.id)),
      },
      { title: 'ID', value: (row) => row.id, wide: true },
    ],
  })
}

/** Reports what happens to the previous tokens. */
function reportEnded(context: CliContext, ended: readonly Token[]): void {
  for (const { last4, state, notAfter } of ended) {
    const until = state === 'retiring' && notAfter !== null ? `works until ${printTime(notAfter)} UTC` : 'is revoked'
    write(context, `the old token ${displayToken(last4)} ${until}`)
  }
}

function printMaybe(ms: number | undefined): string {
  return ms === undefined ? 'never' : printTime(ms)
}

function showIssued(
  context: CliContext,
  flags: SecretFlags,
  reveal: (text: string) => void,
  issued: IssuedToken & { subscription: Subscription },
): void {
  if (flags.dryRun === true) return done(context, flags, `a new token for ${issued.subscription.name} would be issued`)
  const { secret, record, subscription } = issued
  if (flags.json === true) {
    reveal(
      `${JSON.stringify({ subscription: subscription.name, subscription_id: subscription.id, token_id: record.id, last4: record.last4, token: secret }, null, 2)}\n`,
    )
  } else {
    reveal(`${secret}\n`)
    done(context, flags, `new token of ${subscription.name}; it is shown only once`)
  }
}
