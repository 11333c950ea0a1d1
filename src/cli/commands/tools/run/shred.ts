import type { Destination } from '../../../../access/store/model.ts'
import { isoTime } from '../../../../contract/wire-json.ts'
import { printAddressPort } from '../../../../platform/net/ip-range.ts'
import { printTime } from '../../../dates.ts'
import type { ChangeFlags, CliContext, ListFlags } from '../../../define.ts'
import { destinations } from '../../../operations/destinations.ts'
import { openOperations } from '../../../operations/open.ts'
import { subscriptions } from '../../../operations/subscriptions.ts'
import { printJson, printList } from '../../../output/print.ts'
import { done } from '../../../output/report-change.ts'

type Changed = { readonly subscription: string; readonly destination: Destination }

export async function setDestinationCommand(
  this: CliContext,
  flags: ChangeFlags & { vouched?: boolean },
  subscription: string,
  address: string,
): Promise<void> {
  await using on = await openOperations(destinations, this, flags)
  const vouched = flags.vouched === true
  show(this, flags, await on.set({ subscription, address, vouched }), vouched ? 'vouched for by the operator' : WAITING)
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
  await using on = await openOperations(destinations, this, flags)
  if (code !== undefined) return show(this, flags, await on.prove({ subscription, code }), 'proven by its code')
  const challenged = await on.challenge(subscription)
  const renewed = 'challenged again: it has 15 minutes to echo the code'
  show(this, flags, challenged, challenged.isFresh ? 'already challenged, waiting for the echo' : renewed)
}

export async function pauseDestination(this: CliContext, flags: ChangeFlags, subscription: string): Promise<void> {
  await using on = await openOperations(destinations, this, flags)
  show(this, flags, await on.setPaused({ subscription, paused: true }), 'paused')
}

export async function resumeDestination(this: CliContext, flags: ChangeFlags, subscription: string): Promise<void> {
  await using on = await openOperations(destinations, this, flags)
  const resumed = await on.setPaused({ subscription, paused: false })
  show(this, flags, resumed, flags.json === true ? '' : await resumedWords(this, flags, resumed))
}

/** Whether it is sent to again, or why not. */
async function resumedWords(context: CliContext, flags: ChangeFlags, { subscription, destination }: Changed) {
  if (destination.proof === 'unproven')
    return `not paused any more, but unproven: nothing is sent until sluice shred verify ${subscription} succeeds`
  await using on = await openOperations(subscriptions, context, flags, 'read')
  const { state } = await on.show(subscription)
  if (state === 'active') return 'sending again'
  return `not paused any more, but nothing is sent: the subscription is ${state}; see: sluice sub show ${subscription}`
}

export async function showDestinations(this: CliContext, flags: ListFlags, subscription?: string): Promise<void> {
  await using on = await openOperations(destinations, this, flags, 'read')
  const rows = await on.list(subscription)
  printList(this, flags, {
    rows,
    empty: 'no shred destinations; set one with: sluice shred set-destination SUB IP:PORT',
    columns: [
      { title: 'SUBSCRIPTION', value: (row) => row.subscription },
      { title: 'DESTINATION', value: (row) => printAddressPort(row.ip, row.port) },
      { title: 'PROOF', value: (row) => row.proof, show: (row) => (row.isPending ? 'pending' : row.proof) },
      { title: 'PAUSED', value: (row) => row.paused, show: (row) => (row.paused ? 'yes' : 'no') },
      {
        title: 'STATE',
        value: (row) => row.state,
        // The PAUSED column shows a pause by the operator; this one is by the service.
        show: (row) => (row.state === 'paused' ? 'refuses packets' : (row.state ?? '-')),
      },
      { title: 'SENT', value: (row) => row.sent },
      { title: 'UNSENT', value: (row) => row.unsent },
      { title: 'LAST FAULT', value: (row) => row.lastFault, wide: true },
      // The label `destination` of the metrics.
      {
        title: 'INDEX',
        wire: 'destination_index',
        former: 'seat',
        value: (row) => row.destinationIndex,
        wide: true,
      },
      { title: 'SET AT', value: (row) => isoTime(row.setAt), show: (row) => printTime(row.setAt) },
    ],
  })
}

function show(context: CliContext, flags: ChangeFlags, { subscription, destination }: Changed, words: string): void {
  if (flags.json === true) return printJson(context, { subscription, ...destination })
  done(context, flags, `${subscription} -> ${printAddressPort(destination.ip, destination.port)}, ${words}`)
}
