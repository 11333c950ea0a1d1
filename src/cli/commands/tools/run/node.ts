import { addNode, assignNode } from '../../../../access/provisioning/nodes.ts'
import { ServiceError } from '../../../../core/error.ts'
import type { ChangeFlags, CliContext, ListFlags } from '../../../define.ts'
import { printJson, printList } from '../../../output/print.ts'
import { done, openSession } from '../../../session.ts'

export async function addNodeCommand(
  this: CliContext,
  flags: ChangeFlags & { rpc: string; ws?: string; grpc?: string; credential?: string },
  name: string,
): Promise<void> {
  await using session = await openSession(this, flags)
  const { rpc, ws = '', grpc = '', credential = null } = flags
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
  const { node, subscription } = await assignNode(session.provisioning(flags), {
    node: nodeName,
    subscription: subscriptionName ?? null,
  })
  if (flags.json === true) printJson(this, node)
  else
    done(
      this,
      flags,
      `node ${node.name} ${subscription === null ? 'is not assigned' : `is assigned to ${subscription.name}`}`,
    )
}

export async function listNodes(this: CliContext, flags: ListFlags): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const names = new Map((await session.store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
  printList(this, flags, {
    rows: (await session.store.list('nodes')).toSorted((a, b) => a.name.localeCompare(b.name)),
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
