import { ServiceError } from '../../core/error.ts'
import type { DedicatedNode, Subscription } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { lookUp, makeId, type Provisioning, parseName, runChange } from './context.ts'

export type NodeInput = { name: string; rpc: string; ws: string; grpc: string; credential: string | null }

/** Adds a dedicated node, which is not used until it is assigned. */
export async function addNode(on: Provisioning, input: NodeInput): Promise<DedicatedNode> {
  const name = parseName(input.name, 'node')
  const addresses = {
    rpc: parseNodeUrl(input.rpc, ['http:', 'https:']),
    ws: parseNodeUrl(input.ws, ['ws:', 'wss:']),
    grpc: parseNodeUrl(input.grpc, ['http:', 'https:']),
  }
  if (input.credential !== null && !/^(file|env):./.test(input.credential)) {
    throw new ServiceError('invalid-value', 'the credential of a node is a reference: file:PATH or env:NAME')
  }
  return runChange(on, async (tx) => {
    if ((await tx.find('nodes', { name })).length > 0)
      throw new ServiceError('already-exists', `a node "${name}" already exists`)
    const node: DedicatedNode = {
      id: makeId('node', on.random),
      revision: 0,
      name,
      ...addresses,
      credential: input.credential,
      subscriptionId: null,
      createdAt: on.nowMs,
    }
    await tx.put('nodes', node)
    return {
      audit: { action: 'node.add', subjects: [node.id], after: { name, ...addresses, credential: input.credential } },
      result: node,
    }
  })
}

/** Assigns the node to one subscription, which then uses only its own nodes; `null` removes the assignment. */
export async function assignNode(
  on: Provisioning,
  input: { node: string; subscription: string | null },
): Promise<{ node: DedicatedNode; subscription: Subscription | null }> {
  return runChange(on, async (tx) => {
    const node = await lookUp(tx, 'nodes', input.node)
    const subscription = input.subscription === null ? null : await lookUp(tx, 'subscriptions', input.subscription)
    if (subscription !== null && !subscription.products.includes('dedicated-node')) {
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" does not include dedicated-node`, {
        fix: 'Create a subscription with --products dedicated-node.',
      })
    }
    if (subscription !== null && node.subscriptionId !== null && node.subscriptionId !== subscription.id) {
      throw new ServiceError(
        'wrong-state',
        `node "${node.name}" belongs to ${await nameOf(tx, node.subscriptionId)} already`,
        {
          fix: `Take it back first with: sluice node assign ${node.name} --nobody`,
        },
      )
    }
    const changed: DedicatedNode = { ...node, subscriptionId: subscription?.id ?? null }
    await tx.put('nodes', changed)
    return {
      audit: {
        action: 'node.assign',
        subjects: [node.id, ...(subscription === null ? [] : [subscription.id])],
        before: { subscriptionId: node.subscriptionId },
        after: { subscriptionId: changed.subscriptionId },
      },
      result: { node: changed, subscription },
    }
  })
}

/** Parses the URL of a node; refuses credentials, query and fragment, which may contain secrets. */
function parseNodeUrl(text: string, protocols: readonly string[]): string {
  if (text === '') return ''
  const url = URL.canParse(text) ? new URL(text) : undefined
  const prefixes = protocols.map((protocol) => `${protocol}//`).join(' or ')
  if (url === undefined || !protocols.includes(url.protocol)) {
    throw new ServiceError('invalid-value', `a node address must begin with ${prefixes}`)
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new ServiceError('invalid-value', 'a node address may not carry credentials or a query', {
      fix: 'Give the credential as a reference: --credential file:PATH or --credential env:NAME',
    })
  }
  return url.href.replace(/\/$/, '')
}

async function nameOf(tx: AccessTransaction, subscriptionId: string): Promise<string> {
  return (await tx.get('subscriptions', subscriptionId))?.name ?? subscriptionId
}
