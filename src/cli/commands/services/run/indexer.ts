import { lookUp } from '../../../../access/provisioning/context.ts'
import { grantIndexer, revokeIndexer } from '../../../../access/provisioning/indexer-credentials.ts'
import type { CliContext, CutFlags, SecretFlags } from '../../../define.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printJson } from '../../../output/print.ts'
import { secretLocation } from '../../../output/secret-output.ts'
import { done, openSession } from '../../../session.ts'

export async function grantIndexerCommand(this: CliContext, flags: SecretFlags, subscription: string): Promise<void> {
  await issue(this, flags, { subscription, rotate: false })
}

export async function rotateIndexerCommand(
  this: CliContext,
  flags: SecretFlags & { yes?: boolean },
  subscription: string,
): Promise<void> {
  await confirmCut(this, flags, `this revokes the present database password of ${subscription} at once`)
  await issue(this, flags, { subscription, rotate: true })
}

export async function revokeIndexerCommand(this: CliContext, flags: CutFlags, subscription: string): Promise<void> {
  await using session = await openSession(this, flags)
  const found = await lookUp(session.store, 'subscriptions', subscription)
  await confirmCut(this, flags, `this revokes the database user of ${found.name} at once`)
  const { ended } = await revokeIndexer(session.provisioning(flags), { subscription: found.id })
  if (flags.json === true)
    printJson(this, {
      subscription: found.name,
      subscriptionId: found.id,
      revoked: ended.map(({ username }) => username),
    })
  else done(this, flags, `database user ${ended.map(({ username }) => username).join(', ')} of ${found.name} revoked`)
}

async function issue(
  context: CliContext,
  flags: SecretFlags,
  input: { subscription: string; rotate: boolean },
): Promise<void> {
  using output = secretLocation(context, flags)
  await using session = await openSession(context, flags)
  const { record, password, subscription } = await grantIndexer(session.provisioning(flags), input)
  if (flags.dryRun === true)
    return done(context, flags, `database credentials for ${subscription.name} would be issued`)
  if (flags.json === true) {
    output.reveal(
      `${JSON.stringify({ subscription: subscription.name, subscription_id: subscription.id, username: record.username, password }, null, 2)}\n`,
    )
  } else {
    output.reveal(`user      ${record.username}\npassword  ${password}\n`)
    done(context, flags, `database credentials of ${subscription.name}; they are shown only once`)
  }
}
