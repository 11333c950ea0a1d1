import type { NodeChanges } from '../../../../access/provisioning/nodes.ts'
import { ServiceError } from '../../../../core/error.ts'
import type { ChangeFlags, CliContext, ConfirmFlags, CreateStoreFlags, ListFlags } from '../../../define.ts'
import { nodes, type Released } from '../../../operations/nodes.ts'
import { openOperations } from '../../../operations/open.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printJson, printList, write } from '../../../output/print.ts'
import { done } from '../../../output/report-change.ts'

export async function addNodeCommand(
  this: CliContext,
  flags: CreateStoreFlags & { rpc: string; ws?: string; grpc?: string; credential?: string },
  name: string,
): Promise<void> {
  await using on = await openOperations(nodes, this, flags, flags.createStore === true ? 'create' : 'write')
  const { rpc, ws = '', grpc = '', credential = null } = flags
  const { node, warnings } = await on.add({ name, rpc, ws, grpc, credential })
  for (const warning of warnings) write(this, `warning: ${warning}`)
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
  await using on = await openOperations(nodes, this, flags)
  const { node, subscription, released } = await on.assign({ node: nodeName, subscription: subscriptionName ?? null })
  if (flags.json === true) return printJson(this, node)
  const whose = subscription === null ? `is not assigned${releasedText(released)}` : `is assigned to ${subscription}`
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
  await using on = await openOperations(nodes, this, flags)
  const { node, warnings } = await on.change({ node: nodeName, changes })
  for (const warning of warnings) write(this, `warning: ${warning}`)
  if (flags.json === true) printJson(this, node)
  else done(this, flags, `node ${node.name} is changed; check it with: sluice node test ${node.name}`)
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
  flags: ConfirmFlags & { force?: boolean },
  nodeName: string,
): Promise<void> {
  await using on = await openOperations(nodes, this, flags)
  const input = { node: nodeName, force: flags.force === true }
  // The same checks first: what is refused needs no confirmation.
  const affected = await on.affectedBy(input)
  if (affected !== undefined) {
    await confirmCut(this, flags, `this takes a node from ${affected.subscription}${releasedText(affected)}`)
  }
  const { node, released } = await on.remove(input)
  if (flags.json === true) printJson(this, node)
  else done(this, flags, `node ${node.name} is removed${releasedText(released)}`)
}

/** What the loss of a node means for its subscription. */
function releasedText(released: Released | undefined): string {
  if (released === undefined) return ''
  const { subscription, nodesLeft, isBundle } = released
  if (nodesLeft > 0) return `; ${subscription} has ${nodesLeft} left`
  return isBundle
    ? `; ${subscription} uses the shared nodes from now on`
    : `; calls of ${subscription} are refused as not-assigned until it has a node`
}

export async function listNodes(this: CliContext, flags: ListFlags): Promise<void> {
  await using on = await openOperations(nodes, this, flags, 'read')
  printList(this, flags, {
    rows: (await on.list()).toSorted((a, b) => a.name.localeCompare(b.name)),
    empty: 'no dedicated nodes; add one with: sluice node add NAME --rpc URL',
    columns: [
      { title: 'NAME', value: (row) => row.name },
      { title: 'SUBSCRIPTION', value: (row) => row.subscription },
      { title: 'RPC', value: (row) => row.rpc },
      { title: 'WS', value: (row) => row.ws || null, wide: true },
      { title: 'GRPC', value: (row) => row.grpc || null, wide: true },
      { title: 'ID', value: (row) => row.id, wide: true },
    ],
  })
}
