import { lookUp } from '../../../access/provisioning/context.ts'
import { toWireJson } from '../../../contract/wire-json.ts'
import { ServiceError } from '../../../core/error.ts'
import type { AdminCall, AdminHandlers } from '../handler.ts'
import type { HandlerDeps } from './deps.ts'
import { paramOf, textOf } from './query.ts'
import type { ConnectionList } from './running.ts'

type ProcessHandlers = Pick<
  AdminHandlers,
  | 'status'
  | 'top'
  | 'upstreamList'
  | 'upstreamDrain'
  | 'upstreamUndrain'
  | 'connectionList'
  | 'connectionClose'
  | 'indexerStatus'
  | 'senderStats'
>

/** What the running process reports, and what it does with its nodes and connections. */
export function processHandlers({ running, store, snapshot }: HandlerDeps): ProcessHandlers {
  const report = (method: 'status' | 'top') => async () => ({ body: toWireJson(await running.call(method)) })

  const drain = (method: 'upstream-drain' | 'upstream-undrain') => async (call: AdminCall) => {
    const name = paramOf(call, 'node')
    const known = await running.call('upstreams')
    const isKnown = known.some((node) => node.name === name)
    if (!isKnown || (!call.isDryRun && !(await running.call(method, { name })).found))
      throw new ServiceError('not-found', `unknown upstream node "${name}"`, {
        fix: 'List them with GET /v1/upstreams.',
      })
    return { body: { upstream: name, done: !call.isDryRun } }
  }

  /** Those of one subscription, or of all. */
  async function connections(subscription: string | undefined): Promise<ConnectionList> {
    const filter = subscription === undefined ? undefined : { subscription }
    return (await running.call('connections', filter)) ?? { total: 0, connections: [] }
  }

  /** Where the list does not have all connections, one that is not in it may be open. */
  async function isOpen(id: string): Promise<boolean> {
    const { total, connections: listed } = await connections(undefined)
    return listed.some((connection) => connection.id === id) || total > listed.length
  }

  return {
    status: report('status'),
    top: report('top'),

    async upstreamList() {
      return { body: { items: toWireJson(await running.call('upstreams')), next_cursor: null } }
    },
    upstreamDrain: drain('upstream-drain'),
    upstreamUndrain: drain('upstream-undrain'),

    async connectionList(call) {
      const name = textOf(call, 'subscription')
      const only = name === undefined ? undefined : (await lookUp(store, 'subscriptions', name)).id
      const { total, connections: listed } = await connections(only)
      const items = listed.map((each) => ({
        ...each,
        subscription: snapshot().subscription(each.subscription_id)?.name ?? null,
      }))
      return { body: { items, next_cursor: null, total } }
    },

    async connectionClose(call) {
      const id = paramOf(call, 'connection')
      const found = call.isDryRun ? await isOpen(id) : (await running.call('connection-close', { name: id }))?.found
      if (found !== true) throw new ServiceError('not-found', 'there is no such connection; it may have ended')
      return { body: { connection: id, closed: !call.isDryRun } }
    },

    async indexerStatus() {
      const status = await running.call('indexer')
      if (status === null)
        throw new ServiceError('not-found', 'the running process has no indexer', {
          fix: 'Set indexer.enabled = true and restart.',
        })
      const coverage = await running.call('indexer-query', { query: COVERAGE, format: 'JSONEachRow' })
      const text = coverage?.ok === true ? coverage.text : ''
      const rows = text
        .trim()
        .split('\n')
        .filter((line) => line !== '')
      return { body: { ...(toWireJson(status) as object), coverage: rows.map((line) => JSON.parse(line) as unknown) } }
    },

    async senderStats() {
      const stats = await running.call('tip-stats')
      if (stats?.accepted === undefined)
        throw new ServiceError('not-found', 'the running process has no sender', {
          fix: 'Set sender.enabled = true and restart.',
        })
      return { body: toWireJson(stats, { pathStates: 'ways' }) }
    },
  }
}

const COVERAGE =
  'select table_name, from_slot, to_slot, lag_slots, lag_seconds, open_gaps, missing_slots from coverage order by table_name'
