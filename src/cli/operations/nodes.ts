import {
  addNode,
  assignNode,
  changeNode,
  isRemovedNode,
  type NodeChanges,
  removeNode,
} from '../../access/provisioning/nodes.ts'
import type { DedicatedNode } from '../../access/store/model.ts'
import { ServiceError } from '../../core/error.ts'
import { findForbidden } from '../../processes/compose/config/forbidden-addresses.ts'
import type { Group } from './open.ts'

/** The subscription that has lost a node. */
export type Released = { readonly subscription: string; readonly nodesLeft: number; readonly isBundle: boolean }

export type ListedNode = Pick<DedicatedNode, 'id' | 'name' | 'rpc' | 'ws' | 'grpc'> & {
  readonly subscription: string | null
}

type NodeInput = Pick<DedicatedNode, 'name' | 'rpc' | 'ws' | 'grpc' | 'credential'>
type Changed = { readonly node: DedicatedNode; readonly warnings: readonly string[] }
type Removed = { readonly node: DedicatedNode; readonly released: Released | undefined }

export type NodeOperations = {
  add(input: NodeInput): Promise<Changed>
  change(input: { node: string; changes: NodeChanges }): Promise<Changed>
  assign(input: { node: string; subscription: string | null }): Promise<Removed & { subscription: string | null }>
  /** What a removal would do; the same checks, without the change. */
  affectedBy(input: { node: string; force: boolean }): Promise<Released | undefined>
  remove(input: { node: string; force: boolean }): Promise<Removed>
  list(): Promise<readonly ListedNode[]>
}

export const nodes: Group<NodeOperations> = {
  local(session, flags) {
    const { store, config } = session
    const on = session.provisioning(flags)

    /** Refuses an address that is never connected to. One that the configuration does not allow yet is stored, with a warning. */
    function warningsOf(addresses: NodeChanges): string[] {
      return findForbidden(addresses, config.upstreams.allowPrivate).map(({ server, message, isOnlyPrivate }) => {
        if (!isOnlyPrivate) throw new ServiceError('invalid-value', `--${server}: ${message}`)
        return `--${server} is a loopback or private address, and no connection is made to it; allow it with upstreams.allowPrivate = true in the configuration, then: sluice reload`
      })
    }
    const released = (lost: Awaited<ReturnType<typeof removeNode>>['released']): Released | undefined =>
      lost && {
        subscription: lost.subscription.name,
        nodesLeft: lost.nodesLeft,
        isBundle: lost.subscription.products.includes('bundle'),
      }

    return {
      async add(input) {
        const warnings = warningsOf(input)
        return { node: await addNode(on, input), warnings }
      },
      async change({ node, changes }) {
        const warnings = warningsOf(changes)
        return { node: await changeNode(on, { node, changes }), warnings }
      },
      async assign(input) {
        const { node, subscription, released: lost } = await assignNode(on, input)
        return { node, subscription: subscription?.name ?? null, released: released(lost) }
      },
      affectedBy: async (input) => released((await removeNode({ ...on, dryRun: true }, input)).released),
      async remove(input) {
        const { node, released: lost } = await removeNode(on, input)
        return { node, released: released(lost) }
      },
      async list() {
        const names = new Map((await store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
        return (await store.list('nodes'))
          .filter((node) => !isRemovedNode(node))
          .map((node) => {
            const { subscriptionId } = node
            return { ...node, subscription: subscriptionId && (names.get(subscriptionId) ?? subscriptionId) }
          })
      },
    }
  },

  remote(api) {
    type Wire = DedicatedNode & { warnings?: string[]; subscription?: string | null; released?: Released | null }
    const split = ({ warnings = [], subscription = null, released, ...node }: Wire) => ({
      node,
      warnings,
      subscription,
      released: released ?? undefined,
    })
    const none = (value: string | undefined) => (value === '' ? 'none' : value)
    const forced = (force: boolean) => ({ force: force ? 'true' : undefined })
    return {
      async add({ name, rpc, ws, grpc, credential }) {
        const body = { name, rpc, ws: ws || undefined, grpc: grpc || undefined, credential: credential ?? undefined }
        return split(await api.call<Wire>('nodeAdd', { body }))
      },
      async change({ node, changes: { rpc, ws, grpc, credential } }) {
        const body = {
          rpc: none(rpc),
          ws: none(ws),
          grpc: none(grpc),
          credential: credential === null ? 'none' : credential,
        }
        return split(await api.call<Wire>('nodeChange', { params: { node }, body }))
      },
      async assign({ node, subscription }) {
        return split(await api.call<Wire>('nodeAssign', { params: { node }, body: { subscription } }))
      },
      async affectedBy({ node, force }) {
        const query = { ...forced(force), dry_run: 'true' }
        return split(await api.call<Wire>('nodeRemove', { params: { node }, query })).released
      },
      remove: async ({ node, force }) =>
        split(await api.call<Wire>('nodeRemove', { params: { node }, query: forced(force) })),
      list: () => api.list('nodeList'),
    }
  },
}
