import {
  addNode,
  assignNode,
  changeNode,
  isRemovedNode,
  type ReleasedSubscription,
  removeNode,
} from '../../../access/provisioning/nodes.ts'
import type { DedicatedNode } from '../../../access/store/model.ts'
import type { AdminBodies } from '../../../contract/schemas/admin.ts'
import { toWireJson } from '../../../contract/wire-json.ts'
import { ServiceError } from '../../../core/error.ts'
import type { AdminCall, AdminHandlers, AdminReply } from '../handler.ts'
import { readBack } from '../read-back.ts'
import { type HandlerDeps, provisioningOf } from './deps.ts'
import { paramOf, parseFlag } from './query.ts'

/** The subscription that lost a node, and what it uses now. */
function releasedWire(released: ReleasedSubscription | undefined): object | null {
  if (released === undefined) return null
  const { subscription, nodesLeft } = released
  const isBundle = subscription.products.includes('bundle')
  return { subscription: subscription.name, nodes_left: nodesLeft, is_bundle: isBundle }
}

type NodeHandlers = Pick<AdminHandlers, 'nodeList' | 'nodeAdd' | 'nodeChange' | 'nodeRemove' | 'nodeAssign'>

/** Dedicated nodes are machines of the operator: one page has them all. */
const NODES_LISTED_MAX = 1000

export function nodeHandlers(deps: HandlerDeps): NodeHandlers {
  const { store } = deps

  async function changed(call: AdminCall, node: DedicatedNode, more: object = {}): Promise<AdminReply> {
    const stored = call.isDryRun ? undefined : await readBack(() => store.get('nodes', node.id))
    const body = { ...(toWireJson(stored ?? node) as object), ...more }
    return { body, ...(stored && { revision: stored.revision }) }
  }
  const withWarnings = (warnings: readonly string[]) => (warnings.length === 0 ? {} : { warnings })

  return {
    async nodeList() {
      const page = await store.page('nodes', { limit: NODES_LISTED_MAX, isIncluded: (node) => !isRemovedNode(node) })
      const items = await Promise.all(
        page.items.map(async (node) => ({
          ...(toWireJson(node) as object),
          subscription:
            node.subscriptionId === null
              ? null
              : ((await store.get('subscriptions', node.subscriptionId))?.name ?? null),
        })),
      )
      return { body: { items, next_cursor: null } }
    },

    async nodeAdd(call) {
      const { name, rpc, ws = '', grpc = '', credential = null } = call.body as AdminBodies['nodeAdd']
      const warnings = deps.checkNodeAddresses({ rpc, ws, grpc })
      const node = await addNode(provisioningOf(deps, call), { name, rpc, ws, grpc, credential })
      return { ...(await changed(call, node, withWarnings(warnings))), status: 201 }
    },

    async nodeChange(call) {
      const { rpc, ws, grpc, credential } = call.body as AdminBodies['nodeChange']
      const address = (value: string | undefined) => (value === 'none' ? '' : value)
      const changes = {
        rpc: address(rpc),
        ws: address(ws),
        grpc: address(grpc),
        credential: credential === 'none' ? null : credential,
      }
      if (Object.values(changes).every((value) => value === undefined))
        throw new ServiceError('usage', 'nothing to change: give rpc, ws, grpc or credential')
      const warnings = deps.checkNodeAddresses(changes)
      const node = await changeNode(provisioningOf(deps, call), { node: paramOf(call, 'node'), changes })
      return changed(call, node, withWarnings(warnings))
    },

    async nodeRemove(call) {
      const input = { node: paramOf(call, 'node'), force: parseFlag(call, 'force') }
      const { node, released } = await removeNode(provisioningOf(deps, call), input)
      return { body: { ...(toWireJson(node) as object), released: releasedWire(released) } }
    },

    async nodeAssign(call) {
      const { subscription } = call.body as AdminBodies['nodeAssign']
      const input = { node: paramOf(call, 'node'), subscription }
      const { node, subscription: owner, released } = await assignNode(provisioningOf(deps, call), input)
      return changed(call, node, { subscription: owner?.name ?? null, released: releasedWire(released) })
    },
  }
}
