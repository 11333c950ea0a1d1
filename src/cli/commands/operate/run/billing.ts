import { printTime } from '../../../dates.ts'
import type { ChangeFlags, CliContext, CommonFlags } from '../../../define.ts'
import { billing, type SinkName } from '../../../operations/billing.ts'
import { openOperations } from '../../../operations/open.ts'
import { printFacts, printJson, write } from '../../../output/print.ts'
import { done } from '../../../output/report-change.ts'

type SinkFlags = { readonly sink?: SinkName }

export async function billingStatusCommand(this: CliContext, flags: CommonFlags & SinkFlags): Promise<void> {
  await using on = await openOperations(billing, this, flags, 'read')
  const status = await on.status({ sink: flags.sink })
  if (status === undefined) {
    if (flags.json === true) return printJson(this, { sink: null })
    return write(this, 'no billing system is configured: set billing.sink, see docs/billing.md')
  }
  if (flags.json === true) return printJson(this, status)
  printFacts(this, [
    ['sink', status.sink],
    ['state', status.state],
    ['events made up to', status.plannedUntil],
    ['events waiting', status.waiting],
    ['behind', status.behindSeconds === 0 ? 'no' : `${status.behindSeconds} s`],
    ['dead letters', status.deadLetters],
  ])
  for (const { id, hour, subscription, amount, quantity, reason } of status.dead)
    write(this, `${id} ${subscription} ${printTime(Date.parse(hour))} ${amount} ${quantity}: ${reason}`)
  if (status.deadLetters > 0) write(this, 'send them again with: sluice billing retry')
}

export async function billingRetryCommand(
  this: CliContext,
  flags: ChangeFlags & SinkFlags & { readonly outcomeUnknown?: boolean; readonly markSent?: boolean },
  id?: string,
): Promise<void> {
  await using on = await openOperations(billing, this, flags)
  const { changed, unknown } = await on.retry({
    sink: flags.sink,
    id,
    isUnknownIncluded: flags.outcomeUnknown === true,
    isMarkedSent: flags.markSent === true,
  })
  if (flags.dryRun === true) return done(this, flags, 'dead letters would be sent again')
  const verb = flags.markSent === true ? 'count as sent' : 'wait to be sent again'
  done(this, flags, `${changed} events ${verb}`)
  if (unknown > 0) write(this, `${unknown} events stay: their outcome is unknown; see sluice billing retry --help`)
}

export async function billingPauseCommand(this: CliContext, flags: ChangeFlags & SinkFlags): Promise<void> {
  await setPaused(this, flags, true)
}

export async function billingResumeCommand(this: CliContext, flags: ChangeFlags & SinkFlags): Promise<void> {
  await setPaused(this, flags, false)
}

async function setPaused(context: CliContext, flags: ChangeFlags & SinkFlags, paused: boolean): Promise<void> {
  await using on = await openOperations(billing, context, flags)
  await on.setPaused({ sink: flags.sink, paused })
  done(context, flags, paused ? 'events wait until: sluice billing resume' : 'events are sent again within 10 s')
}
