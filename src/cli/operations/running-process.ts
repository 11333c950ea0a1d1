import { isServiceError } from '../../core/error.ts'
import { openControlClient } from '../../platform/process/control-client.ts'
import type { CliContext, CommonFlags } from '../define.ts'
import { controlPath } from '../locate.ts'
import type { RemoteApi } from '../remote/api.ts'
import { openRemote } from './open.ts'

/** The process that a command is about: its control socket, or its admin API. */
export type RunningProcess = Disposable & {
  /** Calls a control method of the process and returns its result. */
  call(method: string, params?: { readonly name: string }): Promise<unknown>
}

export async function openRunningProcess(context: CliContext, flags: CommonFlags): Promise<RunningProcess> {
  if (context.remote === undefined) return openControlClient(controlPath(context, flags))
  const api = await openRemote(context, flags)
  return {
    async call(method, params) {
      const route = ROUTES[method]
      if (route === undefined) throw new Error(`${method} has no route`)
      return route(api, params?.name ?? '')
    },
    [Symbol.dispose]: () => api[Symbol.dispose](),
  }
}

/** The routes with the results of control methods. */
const ROUTES: Readonly<Record<string, (api: RemoteApi, name: string) => Promise<unknown>>> = {
  status: (api) => api.call('status'),
  top: (api) => api.call('top'),
  upstreams: (api) => api.list('upstreamList'),
  'upstream-drain': (api, node) => foundOrNot(api.call('upstreamDrain', { params: { node } })),
  'upstream-undrain': (api, node) => foundOrNot(api.call('upstreamUndrain', { params: { node } })),
  // Their names are those of the API in the process too.
  notices: async (api) => (await api.raw<{ items: unknown[] }>('notices', { query: { limit: '1000' } })).items,
  'notice-test': (api) => api.raw('noticeTest'),
  'tip-stats': (api) => api.call('senderStats'),
}

/** A missing node is reported by the command, in its own words. */
async function foundOrNot(change: Promise<unknown>): Promise<{ found: boolean }> {
  try {
    await change
    return { found: true }
  } catch (error) {
    if (isServiceError(error, 'not-found')) return { found: false }
    throw error
  }
}
