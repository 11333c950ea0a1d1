import type { Destination, Subscription } from '../../../access/model.ts'
import { lookUp } from '../../../access/provisioning/context.ts'
import { setDestination, setDestinationPaused } from '../../../access/provisioning/destinations.ts'
import { printAddressPort } from '../../../host/ip-range.ts'
import type { ChangeFlags, CliContext, ListFlags } from '../define.ts'
import { isoTime, printJson, printList } from '../output.ts'
import { done, openSession } from '../session.ts'
import { printTime } from '../when.ts'

export async function setDestinationCommand(
  this: CliContext,
  flags: ChangeFlags & { vouched?: boolean },
  subscription: string,
  address: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  const vouched = flags.vouched === true
  const result = await setDestination(session.provisioning(flags), { subscription, destination: address, vouched })
  show(this, flags, result, vouched ? 'vouched for by you' : 'unproven: nothing is sent until it answers its challenge')
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
  const rows = (await session.store.list('destinations')).filter((row) => only === undefined || row.id === only.id)
  printList(this, flags, {
    rows,
    empty: 'no shred destinations; set one with: sluice shred set-destination SUB IP:PORT',
    columns: [
      { title: 'SUBSCRIPTION', value: (row) => names.get(row.id) ?? row.id },
      { title: 'DESTINATION', value: (row) => printAddressPort(row.ip, row.port) },
      { title: 'PROOF', value: (row) => row.proof },
      { title: 'PAUSED', value: (row) => row.paused, show: (row) => (row.paused ? 'yes' : 'no') },
      { title: 'SET AT', value: (row) => isoTime(row.setAt), show: (row) => printTime(row.setAt) },
    ],
  })
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
