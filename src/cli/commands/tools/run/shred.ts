import { lookUp } from '../../../../access/provisioning/context.ts'
import {
  challengeUnlessFresh,
  isOpenChallenge,
  proveDestination,
  setDestination,
  setDestinationPaused,
} from '../../../../access/provisioning/destinations.ts'
import type { Destination, Subscription } from '../../../../access/store/model.ts'
import { isoTime } from '../../../../contract/wire-json.ts'
import { ServiceError } from '../../../../core/error.ts'
import { printAddressPort } from '../../../../platform/net/ip-range.ts'
import { openControlClient } from '../../../../platform/process/control-client.ts'
import { checkDestination } from '../../../../processes/compose/services/shreds.ts'
import type { ShredsStatus } from '../../../../shreds/report/status.ts'
import { printTime } from '../../../dates.ts'
import type { ChangeFlags, CliContext, CommonFlags, ListFlags } from '../../../define.ts'
import { controlPath } from '../../../locate.ts'
import { printJson, printList } from '../../../output/print.ts'
import { done, openSession } from '../../../session.ts'

export async function setDestinationCommand(
  this: CliContext,
  flags: ChangeFlags & { vouched?: boolean },
  subscription: string,
  address: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  const vouched = flags.vouched === true
  checkDestination(address, session)
  const result = await setDestination(session.provisioning(flags), { subscription, destination: address, vouched })
  show(this, flags, result, vouched ? 'vouched for by the operator' : WAITING)
}

const WAITING =
  'unproven: nothing is sent until it echoes its challenge, which it gets three times within ten seconds; ' +
  'if the customer does not listen now, run sluice shred verify later'

/** Without a code it challenges the destination again; with the right code it is proven. */
export async function verifyDestination(
  this: CliContext,
  flags: ChangeFlags,
  subscription: string,
  code?: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  const on = session.provisioning(flags)
  if (code !== undefined) {
    return show(this, flags, await proveDestination(on, { subscription, code, by: 'operator' }), 'proven by its code')
  }
  const challenged = await challengeUnlessFresh(on, { subscription })
  const isNew = 'challenged again: it has 15 minutes to echo the code'
  show(this, flags, challenged, challenged.isFresh ? 'already challenged, waiting for the echo' : isNew)
}

export async function pauseDestination(this: CliContext, flags: ChangeFlags, subscription: string): Promise<void> {
  await using session = await openSession(this, flags)
  show(this, flags, await setDestinationPaused(session.provisioning(flags), { subscription, paused: true }), 'paused')
}

export async function resumeDestination(this: CliContext, flags: ChangeFlags, subscription: string): Promise<void> {
  await using session = await openSession(this, flags)
  show(
    this,
    flags,
    await setDestinationPaused(session.provisioning(flags), { subscription, paused: false }),
    'sending again',
  )
}

export async function showDestinations(this: CliContext, flags: ListFlags, subscription?: string): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const names = new Map((await session.store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
  const only = subscription === undefined ? undefined : await lookUp(session.store, 'subscriptions', subscription)
  const rows = (await session.store.list('destinations'))
    .map((row) => ({ ...row, subscriptionId: row.id.split('/')[0] ?? '', isPending: row.id.includes('/') }))
    .filter((row) => only === undefined || row.subscriptionId === only.id)
    .filter((row) => !row.isPending || isOpenChallenge(row, session.nowMs))
  const live = await askRunning(this, flags)
  const liveOf = (row: { subscriptionId: string; isPending: boolean }) =>
    row.isPending ? undefined : live?.destinations.find((each) => each.subscriptionId === row.subscriptionId)
  const reasonOf = (row: { subscriptionId: string; isPending: boolean }) =>
    row.isPending ? undefined : live?.refused.find((each) => each.subscriptionId === row.subscriptionId)?.reason
  printList(this, flags, {
    rows,
    empty: 'no shred destinations; set one with: sluice shred set-destination SUB IP:PORT',
    columns: [
      { title: 'SUBSCRIPTION', value: (row) => names.get(row.subscriptionId) ?? row.subscriptionId },
      { title: 'DESTINATION', value: (row) => printAddressPort(row.ip, row.port) },
      { title: 'PROOF', value: (row) => row.proof, show: (row) => (row.isPending ? 'pending' : row.proof) },
      { title: 'PAUSED', value: (row) => row.paused, show: (row) => (row.paused ? 'yes' : 'no') },
      {
        title: 'STATE',
        value: (row) => liveOf(row)?.state ?? reasonOf(row),
        // The PAUSED column shows a pause by the operator; this one is by the service.
        show: (row) =>
          liveOf(row)?.state === 'paused' ? 'refuses packets' : (liveOf(row)?.state ?? reasonOf(row) ?? '-'),
      },
      { title: 'SENT', value: (row) => liveOf(row)?.packets },
      { title: 'UNSENT', value: (row) => liveOf(row)?.unsent },
      { title: 'LAST FAULT', value: (row) => liveOf(row)?.lastFault, wide: true },
      // The index is the label `seat` of the metrics, and has that name in JSON.
      { title: 'INDEX', wire: 'seat', value: (row) => liveOf(row)?.destinationIndex, wide: true },
      { title: 'SET AT', value: (row) => isoTime(row.setAt), show: (row) => printTime(row.setAt) },
    ],
  })
}

/** State of the running service; undefined if none runs. */
async function askRunning(context: CliContext, flags: CommonFlags): Promise<ShredsStatus | undefined> {
  try {
    using client = await openControlClient(controlPath(context, flags))
    return ((await client.call('shreds')) as ShredsStatus | null) ?? undefined
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

function show(
  context: CliContext,
  flags: ChangeFlags,
  result: { subscription: Subscription; destination: Destination },
  words: string,
): void {
  const { subscription, destination } = result
  if (flags.json === true) return printJson(context, { subscription: subscription.name, ...destination })
  done(context, flags, `${subscription.name} -> ${printAddressPort(destination.ip, destination.port)}, ${words}`)
}
