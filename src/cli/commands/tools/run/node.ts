import {
  addNode,
  assignNode,
  changeNode,
  isRemovedNode,
  type NodeChanges,
  type ReleasedSubscription,
  removeNode,
} from '../../../../access/provisioning/nodes.ts'
import { ServiceError } from '../../../../core/error.ts'
import type { Config } from '../../../../processes/compose/config/config.ts'
import type { ChangeFlags, CliContext, CutFlags, FirstFlags, ListFlags } from '../../../define.ts'
import { findForbidden } from '../../../doctor/upstreams.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printJson, printList, write } from '../../../output/print.ts'
import { done, openSession } from '../../../session.ts'

export async function addNodeCommand(
  this: CliContext,
  flags: FirstFlags & { rpc: string; ws?: string; grpc?: string; credential?: string },
  name: string,
): Promise<void> {
  await using session = await openSession(this, flags, flags.createStore === true ? 'create' : 'write')
  const { rpc, ws = '', grpc = '', credential = null } = flags
  checkAddresses(this, session.config, { rpc, ws, grpc })
  const node = await addNode(session.provisioning(flags), { name, rpc, ws, grpc, credential })
  if (flags.json === true) printJson(this, node)
  else done(this, flags, `node ${node.name} added (${node.id}); assign it with: sluice node assign ${node.name} SUB`)
}

export async function assignNodeCommand(
  this: CliContext,
  flags: ChangeFlags & { nobody?: boolean },
  nodeName: string,
  subscriptionName?: string,
): Promise<void> {
  if ((subscriptionName === undefined) !== (flags.nobody === true)) {
    throw new ServiceError('usage', 'give a subscription, or --nobody', { fix: 'sluice node assign NODE SUB' })
  }
  await using session = await openSession(this, flags)
  const { node, subscription, released } = await assignNode(session.provisioning(flags), {
    node: nodeName,
    subscription: subscriptionName ?? null,
  })
  if (flags.json === true) return printJson(this, node)
  const whose =
    subscription === null ? `is not assigned${releasedText(released)}` : `is assigned to ${subscription.name}`
  done(this, flags, `node ${node.name} ${whose}`)
}

type EndpointFlags = ChangeFlags & { rpc?: string; ws?: string; grpc?: string; credential?: string }

export async function setNodeCommand(this: CliContext, flags: EndpointFlags, nodeName: string): Promise<void> {
  const changes = changesOf(flags)
  if (Object.values(changes).every((value) => value === undefined)) {
    throw new ServiceError('usage', 'nothing to change: give --rpc, --ws, --grpc or --credential', {
      fix: `For example: sluice node set ${nodeName} --credential env:NAME`,
    })
  }
  await using session = await openSession(this, flags)
  checkAddresses(this, session.config, changes)
  const node = await changeNode(session.provisioning(flags), { node: nodeName, changes })
  if (flags.json === true) printJson(this, node)
  else done(this, flags, `node ${node.name} is changed; check it with: sluice node test ${node.name}`)
}

/** Refuses an address that is never connected to. One that the configuration does not allow yet is stored, with a warning. */
function checkAddresses(context: CliContext, { upstreams }: Config, addresses: NodeChanges): void {
  for (const { server, message, isOnlyPrivate } of findForbidden(addresses, upstreams.allowPrivate)) {
    if (!isOnlyPrivate) throw new ServiceError('invalid-value', `--${server}: ${message}`)
    write(
      context,
      `warning: --${server} is a loopback or private address, and no connection is made to it; allow it with upstreams.allowPrivate = true in the configuration, then: sluice reload`,
    )
  }
}

function changesOf({ rpc, ws, grpc, credential }: EndpointFlags): NodeChanges {
  const address = (value: string | undefined) => (value === 'none' ? '' : value)
  return {
    rpc: address(rpc),
    ws: address(ws),
    grpc: address(grpc),
    credential: credential === 'none' ? null : credential,
  }
}

export async function removeNodeCommand(
  this: CliContext,
  flags: CutFlags & { force?: boolean },
  nodeName: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  const force = flags.force === true
  // The same checks first, so that nobody confirms what is refused.
  const { released: affected } = await removeNode(session.provisioning({ ...flags, dryRun: true }), {
    node: nodeName,
    force,
  })
  if (affected !== undefined) {
    await confirmCut(this, flags, `this takes a node from ${affected.subscription.name}${releasedText(affected)}`)
  }
  const { node, released } = await removeNode(session.provisioning(flags), { node: nodeName, force })
  if (flags.json === true) printJson(this, node)
  else done(this, flags, `node ${node.name} is removed${releasedText(released)}`)
}

/** What the loss of a node means for its subscription. */
function releasedText(released: ReleasedSubscription | undefined): string {
  if (released === undefined) return ''
  const { subscription, nodesLeft } = released
  if (nodesLeft > 0) return `; ${subscription.name} has ${nodesLeft} left`
  return subscription.products.includes('bundle')
    ? `; ${subscription.name} uses the shared nodes from now on`
    : `; calls of ${subscription.name} are refused as not-assigned until it has a node`
}

export async function listNodes(this: CliContext, flags: ListFlags): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const names = new Map((await session.store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
  printList(this, flags, {
    rows: (await session.store.list('nodes'))
      .filter((node) => !isRemovedNode(node))
      .toSorted((a, b) => a.name.localeCompare(b.name)),
    empty: 'no dedicated nodes; add one with: sluice node add NAME --rpc URL',
    columns: [
      { title: 'NAME', value: (row) => row.name },
      {
        title: 'SUBSCRIPTION',
        value: (row) => (row.subscriptionId === null ? null : (names.get(row.subscriptionId) ?? row.subscriptionId)),
      },
      { title: 'RPC', value: (row) => row.rpc },
      { title: 'WS', value: (row) => row.ws || null, wide: true },
      { title: 'GRPC', value: (row) => row.grpc || null, wide: true },
      { title: 'ID', value: (row) => row.id, wide: true },
    ],
  })
}
