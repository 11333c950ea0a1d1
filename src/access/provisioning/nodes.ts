import { ROLE_PERMISSIONS } from '../../contract/admin-routes.ts'
import { ServiceError } from '../../core/error.ts'
import { isAddressRef } from '../../platform/config/address-ref.ts'
import type { DedicatedNode, Subscription } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { lookUp, lookUpToChange, makeId, type Provisioning, parseName, runChange } from './context.ts'

/** An address is empty where the node has no such endpoint. */
export type NodeInput = { name: string; rpc: string; ws: string; grpc: string; credential: string | null }

export type NodeChanges = { readonly [Field in 'rpc' | 'ws' | 'grpc' | 'credential']?: NodeInput[Field] | undefined }

/** Adds a dedicated node, which is not used until it is assigned. */
export async function addNode(on: Provisioning, input: NodeInput): Promise<DedicatedNode> {
  const name = parseName(input.name, 'node')
  const endpoints = parseEndpoints(input)
  refuseReference(on, endpoints)
  return runChange(on, async (tx) => {
    if ((await tx.find('nodes', { name })).length > 0)
      throw new ServiceError('already-exists', `a node "${name}" already exists`)
    const node: DedicatedNode = {
      id: makeId('node', on.random),
      revision: 0,
      name,
      ...endpoints,
      subscriptionId: null,
      createdAt: on.nowMs,
    }
    await tx.put('nodes', node)
    return { audit: { action: 'node.add', subjects: [node.id], after: { name, ...endpoints } }, result: node }
  })
}

/** Changes addresses or credential. Processes use them for new connections within a second. */
export async function changeNode(
  on: Provisioning,
  input: { node: string; changes: NodeChanges },
): Promise<DedicatedNode> {
  return runChange(on, async (tx) => {
    const node = await findNode(on, tx, input.node)
    const { rpc = node.rpc, ws = node.ws, grpc = node.grpc, credential = node.credential } = input.changes
    const endpoints = parseEndpoints({ rpc, ws, grpc, credential })
    // Also where only an address changes: what the reference stands for is sent there.
    refuseReference(on, endpoints)
    const changed: DedicatedNode = { ...node, ...endpoints }
    await tx.put('nodes', changed)
    return {
      audit: { action: 'node.set', subjects: [node.id], before: endpointsOf(node), after: endpoints },
      result: changed,
    }
  })
}

/** A subscription that a node was taken from. */
export type ReleasedSubscription = { readonly subscription: Subscription; readonly nodesLeft: number }

/** Assigns the node to one subscription, which then uses only its own nodes; `null` removes the assignment. */
export async function assignNode(
  on: Provisioning,
  input: { node: string; subscription: string | null },
): Promise<{ node: DedicatedNode; subscription: Subscription | null; released: ReleasedSubscription | undefined }> {
  return runChange(on, async (tx) => {
    const node = await findNode(on, tx, input.node)
    const subscription = input.subscription === null ? null : await lookUp(tx, 'subscriptions', input.subscription)
    if (subscription?.state === 'cancelled')
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" is cancelled`)
    if (subscription !== null && !subscription.products.includes('dedicated-node')) {
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" does not include dedicated-node`, {
        fix: `Add it with: sluice sub add-product ${subscription.name} dedicated-node`,
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
    const released = subscription === null ? await releasedFrom(tx, node) : undefined
    return {
      audit: {
        action: 'node.assign',
        subjects: [node.id, ...(subscription === null ? [] : [subscription.id])],
        before: { subscriptionId: node.subscriptionId },
        after: { subscriptionId: changed.subscriptionId },
      },
      result: { node: changed, subscription, released },
    }
  })
}

/** Removes a node for good; an assigned one only with `force`. Its name can be used again. */
export async function removeNode(
  on: Provisioning,
  input: { node: string; force: boolean },
): Promise<{ node: DedicatedNode; released: ReleasedSubscription | undefined }> {
  return runChange(on, async (tx) => {
    const node = await findNode(on, tx, input.node)
    const { id, name, subscriptionId } = node
    if (subscriptionId !== null && !input.force) {
      throw new ServiceError('wrong-state', `node "${name}" is assigned to ${await nameOf(tx, subscriptionId)}`, {
        fix: `Take it back first with: sluice node assign ${name} --nobody   # or add --force`,
      })
    }
    // Records are never deleted. Without an address a node is removed, and its id in place of the name frees the name.
    await tx.put('nodes', { ...node, name: id, rpc: '', ws: '', grpc: '', credential: null, subscriptionId: null })
    const released = await releasedFrom(tx, node)
    return {
      audit: {
        action: 'node.remove',
        subjects: [id, ...(subscriptionId === null ? [] : [subscriptionId])],
        before: { name, ...endpointsOf(node), subscriptionId },
      },
      result: { node, released },
    }
  })
}

/** A removed node stays in the store without an address. */
export function isRemovedNode({ rpc, ws, grpc }: Pick<DedicatedNode, 'rpc' | 'ws' | 'grpc'>): boolean {
  return rpc === '' && ws === '' && grpc === ''
}

async function findNode(on: Provisioning, tx: AccessTransaction, idOrName: string): Promise<DedicatedNode> {
  const node = await lookUpToChange(on, tx, 'nodes', idOrName)
  if (!isRemovedNode(node)) return node
  throw new ServiceError('not-found', `the node ${node.id} was removed`, { fix: 'List them with: sluice node list' })
}

/** The subscription that lost this node, with how many nodes it has left. */
async function releasedFrom(
  tx: AccessTransaction,
  { subscriptionId }: DedicatedNode,
): Promise<ReleasedSubscription | undefined> {
  const subscription = subscriptionId === null ? undefined : await tx.get('subscriptions', subscriptionId)
  if (subscription === undefined) return undefined
  return { subscription, nodesLeft: (await tx.find('nodes', { subscriptionId: subscription.id })).length }
}

function endpointsOf({ rpc, ws, grpc, credential }: DedicatedNode): Omit<NodeInput, 'name'> {
  return { rpc, ws, grpc, credential }
}

function parseEndpoints({ rpc, ws, grpc, credential }: Omit<NodeInput, 'name'>): Omit<NodeInput, 'name'> {
  const addresses = {
    rpc: parseNodeAddress(rpc, ['http:', 'https:']),
    ws: parseNodeAddress(ws, ['ws:', 'wss:']),
    grpc: parseNodeAddress(grpc, ['http:', 'https:']),
  }
  if (isRemovedNode(addresses)) {
    throw new ServiceError('invalid-value', 'a node needs at least one address', {
      fix: 'Give --rpc, --ws or --grpc; remove the node with: sluice node remove NODE',
    })
  }
  if (credential !== null && !/^(file|env):./.test(credential)) {
    throw new ServiceError('invalid-value', 'the credential of a node is a reference: file:PATH or env:NAME')
  }
  return { ...addresses, credential }
}

/**
 * A reference names any file or variable of this machine, and the node gets its content. So over the admin API only those who may administer
 * choose it, or where it is sent: others could have every secret of the process sent to an address of theirs.
 */
function refuseReference({ actor }: Provisioning, { rpc, ws, grpc, credential }: Omit<NodeInput, 'name'>): void {
  if (actor.admin === undefined || ROLE_PERMISSIONS[actor.admin.role].includes('administer')) return
  if (credential === null && ![rpc, ws, grpc].some(isAddressRef)) return
  throw new ServiceError(
    'forbidden',
    `the role ${actor.admin.role} may not set up a node with a credential or an address by reference`,
    { fix: 'Ask an owner, or give addresses without a key.' },
  )
}

/** An address, or a reference to one. A literal address has no credentials, query and fragment, which may contain secrets. */
function parseNodeAddress(text: string, protocols: readonly string[]): string {
  if (text === '' || isAddressRef(text)) return text
  const url = URL.canParse(text) ? new URL(text) : undefined
  const prefixes = protocols.map((protocol) => `${protocol}//`).join(' or ')
  if (url === undefined || !protocols.includes(url.protocol)) {
    throw new ServiceError('invalid-value', `a node address must begin with ${prefixes}`, {
      fix: 'Give the address, or a reference to it: file:PATH or env:NAME',
    })
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new ServiceError('invalid-value', 'a literal node address may not carry credentials or a query', {
      fix: 'Write the whole address into a file of mode 0600 or a variable of the service, and give file:PATH or env:NAME in place of the address; a key for a header is given by --credential.',
    })
  }
  return url.href.replace(/\/$/, '')
}

async function nameOf(tx: AccessTransaction, subscriptionId: string): Promise<string> {
  return (await tx.get('subscriptions', subscriptionId))?.name ?? subscriptionId
}
