import type { Token } from '../../../../access/store/model.ts'
import { displayToken } from '../../../../access/token.ts'
import { isoTime } from '../../../../contract/wire-json.ts'
import { ServiceError } from '../../../../core/error.ts'
import { parseDuration } from '../../../../core/human-units.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { printTime } from '../../../dates.ts'
import type { CliContext, ConfirmFlags, ListFlags, SecretFlags } from '../../../define.ts'
import { openOperations } from '../../../operations/open.ts'
import { type ListedToken, type NewToken, type SecretOperations, secrets } from '../../../operations/secrets.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printJson, printList, write } from '../../../output/print.ts'
import { done } from '../../../output/report-change.ts'
import { secretLocation } from '../../../output/secret-output.ts'
import { printTokenState } from './token-state.ts'

export async function issueTokenCommand(this: CliContext, flags: SecretFlags, subscription: string): Promise<void> {
  using output = secretLocation(this, flags)
  await using on = await openOperations(secrets, this, flags)
  showIssued(this, flags, output.reveal, await on.issue(subscription))
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
  await using on = await openOperations(secrets, this, flags)
  const cut = await cutByRotation(on, subscription, graceMs)
  if (cut !== undefined)
    await confirmCut(this, flags, `this revokes ${cut} at once and closes its open streams within 5 s`)
  const issued = await on.rotate({ subscription, grace: flags.grace, graceMs })
  showIssued(this, flags, output.reveal, issued)
  if (flags.json !== true) reportEnded(this, issued.ended)
}

/** What a rotation revokes at once: the present token without a grace, else one of an earlier rotation that still has its own. */
async function cutByRotation(
  on: Pick<SecretOperations, 'find' | 'list'>,
  subscription: string,
  graceMs: number,
): Promise<string | undefined> {
  const { id, name } = await on.find(subscription)
  if (graceMs === 0) return `the present token of ${name}`
  const isInGrace = ({ state, notAfter }: ListedToken) =>
    state === 'retiring' && notAfter !== null && notAfter > systemClock.nowMs()
  const earlier = (await on.list(id)).find(isInGrace)
  if (earlier === undefined) return undefined
  return `the earlier token ${displayToken(earlier.last4)} of ${name}, which works until ${printTime(earlier.notAfter ?? 0)} UTC,`
}

export async function revokeTokenCommand(this: CliContext, flags: ConfirmFlags, subscription: string): Promise<void> {
  await using on = await openOperations(secrets, this, flags)
  const found = await on.find(subscription)
  await confirmCut(
    this,
    flags,
    `this revokes the token of ${found.name} at once and closes its open streams within 5 s`,
  )
  const ended = await on.revoke(found.id)
  if (flags.json === true)
    printJson(this, {
      subscription: found.name,
      subscriptionId: found.id,
      revoked: ended.map(({ id, last4 }) => ({ id, last4 })),
    })
  else done(this, flags, `token ${ended.map((token) => displayToken(token.last4)).join(', ')} of ${found.name} revoked`)
}

export async function listTokens(this: CliContext, flags: ListFlags, subscription?: string): Promise<void> {
  await using on = await openOperations(secrets, this, flags, 'read')
  const tokens = await on.list(subscription)
  printList(this, flags, {
    rows: tokens.toSorted((a, b) => b.createdAt - a.createdAt),
    empty: 'no tokens',
    columns: [
      { title: 'TOKEN', value: (row) => displayToken(row.last4) },
      { title: 'SUBSCRIPTION', value: (row) => row.subscription },
      { title: 'STATE', value: (row) => row.state, show: (row) => printTokenState(row) },
      { title: 'CREATED AT', value: (row) => isoTime(row.createdAt), show: (row) => printTime(row.createdAt) },
      { title: 'CREATED BY', value: (row) => row.createdBy, wide: true },
      {
        title: 'NOT AFTER',
        value: (row) => isoTime(row.notAfter),
        show: (row) => (row.notAfter === null ? '-' : printTime(row.notAfter)),
      },
      {
        title: 'LAST USED AT',
        value: (row) => isoTime(row.lastUsedAt),
        show: (row) => (row.lastUsedAt === null ? 'never' : printTime(row.lastUsedAt)),
      },
      { title: 'ID', value: (row) => row.id, wide: true },
    ],
  })
}

/** Reports what happens to the previous tokens. */
function reportEnded(context: CliContext, ended: readonly Pick<Token, 'last4' | 'state' | 'notAfter'>[]): void {
  for (const { last4, state, notAfter } of ended) {
    const until = state === 'retiring' && notAfter !== null ? `works until ${printTime(notAfter)} UTC` : 'is revoked'
    write(context, `the old token ${displayToken(last4)} ${until}`)
  }
}

function showIssued(
  context: CliContext,
  flags: SecretFlags,
  reveal: (text: string) => void,
  { secret = '', subscription, tokenId, last4 }: NewToken,
): void {
  if (flags.dryRun === true) return done(context, flags, `a new token for ${subscription.name} would be issued`)
  if (flags.json === true) {
    reveal(
      `${JSON.stringify({ subscription: subscription.name, subscription_id: subscription.id, token_id: tokenId, last4, token: secret }, null, 2)}\n`,
    )
  } else {
    reveal(`${secret}\n`)
    done(context, flags, `new token of ${subscription.name}; it is shown only once`)
  }
}
