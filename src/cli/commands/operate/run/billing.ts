import { readBillingStatus } from '../../../../admin/billing/status.ts'
import { ServiceError } from '../../../../core/error.ts'
import { printTime } from '../../../dates.ts'
import type { ChangeFlags, CliContext, CommonFlags } from '../../../define.ts'
import { printFacts, printJson, write } from '../../../output/print.ts'
import { done, openSession, type Session } from '../../../session.ts'

type SinkName = 'openmeter' | 'lago' | 'stripe'
type SinkFlags = { readonly sink?: SinkName }

export async function billingStatusCommand(this: CliContext, flags: CommonFlags & SinkFlags): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const sink = flags.sink ?? session.config.billing.sink
  if (sink === undefined) {
    if (flags.json === true) return printJson(this, { sink: null })
    return write(this, 'no billing system is configured: set billing.sink, see docs/billing.md')
  }
  const { settleMs } = session.config.billing
  const status = await readBillingStatus(session.store, { sink, settleMs, nowMs: session.nowMs })
  if (flags.json === true) return printJson(this, status)
  printFacts(this, [
    ['sink', sink],
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
  await using session = await openSession(this, flags)
  const sink = sinkOf(session, flags)
  if (sink === undefined || flags.dryRun === true) return done(this, flags, 'dead letters would be sent again')
  const { changed, unknown } = await session.store.billing.retry(session.provisioning(flags), sink, {
    ids: id === undefined ? undefined : [id],
    isUnknownIncluded: flags.outcomeUnknown === true,
    isMarkedSent: flags.markSent === true,
  })
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
  await using session = await openSession(context, flags)
  const sink = sinkOf(session, flags)
  if (sink !== undefined && flags.dryRun !== true)
    await session.store.billing.setPaused(session.provisioning(flags), sink, paused)
  done(context, flags, paused ? 'events wait until: sluice billing resume' : 'events are sent again within 10 s')
}

/** Undefined only for a dry run, which also works where no billing system is configured. */
function sinkOf({ config }: Session, flags: ChangeFlags & SinkFlags): SinkName | undefined {
  const sink = flags.sink ?? config.billing.sink
  if (sink !== undefined || flags.dryRun === true) return sink
  throw new ServiceError('usage', 'no billing system is configured', {
    fix: 'Set billing.sink in the configuration, or name it with --sink.',
  })
}
