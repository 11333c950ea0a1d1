import type { CliContext, ConfirmFlags, SecretFlags } from '../../../define.ts'
import { openOperations } from '../../../operations/open.ts'
import { secrets } from '../../../operations/secrets.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printJson } from '../../../output/print.ts'
import { done } from '../../../output/report-change.ts'
import { secretLocation } from '../../../output/secret-output.ts'

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

export async function revokeIndexerCommand(this: CliContext, flags: ConfirmFlags, subscription: string): Promise<void> {
  await using on = await openOperations(secrets, this, flags)
  const found = await on.find(subscription)
  await confirmCut(this, flags, `this revokes the database user of ${found.name} at once`)
  const revoked = await on.revokeUsers(found.id)
  if (flags.json === true) printJson(this, { subscription: found.name, subscriptionId: found.id, revoked })
  else done(this, flags, `database user ${revoked.join(', ')} of ${found.name} revoked`)
}

async function issue(
  context: CliContext,
  flags: SecretFlags,
  input: { subscription: string; rotate: boolean },
): Promise<void> {
  using output = secretLocation(context, flags)
  await using on = await openOperations(secrets, context, flags)
  const { username, password, subscription } = await on.grant(input)
  if (flags.dryRun === true)
    return done(context, flags, `database credentials for ${subscription.name} would be issued`)
  if (flags.json === true) {
    output.reveal(
      `${JSON.stringify({ subscription: subscription.name, subscription_id: subscription.id, username, password }, null, 2)}\n`,
    )
  } else {
    output.reveal(`user      ${username}\npassword  ${password}\n`)
    done(context, flags, `database credentials of ${subscription.name}; they are shown only once`)
  }
}
