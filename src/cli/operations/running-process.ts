import type { ListedNotice } from '../../contract/notice-wire.ts'
import { isServiceError } from '../../core/error.ts'
import type { ControlProtocol } from '../../processes/compose/process/control-protocol.ts'
import { openControl } from '../control.ts'
import type { CliContext, CommonFlags } from '../define.ts'
import type { RemoteApi } from '../remote/api.ts'
import { openRemote } from './open.ts'

/** The control methods that have a route of the admin API with the same result. */
type RemoteMethod =
  | 'status'
  | 'top'
  | 'upstreams'
  | 'upstream-drain'
  | 'upstream-undrain'
  | 'notices'
  | 'notice-test'
  | 'tip-stats'

/** The process that a command is about: its control socket, or its admin API. */
export type RunningProcess = Disposable & {
  /** Calls a control method of the process and returns its result. */
  call<Method extends RemoteMethod>(
    method: Method,
    ...params: Parameters<ControlProtocol[Method]>
  ): Promise<ReturnType<ControlProtocol[Method]>>
}

export async function openRunningProcess(context: CliContext, flags: CommonFlags): Promise<RunningProcess> {
  if (context.remote === undefined) return openControl(context, flags)
  const api = await openRemote(context, flags)
  return {
    call: (method, ...params) => ROUTES[method](api, ...params),
    [Symbol.dispose]: () => api[Symbol.dispose](),
  }
}

const ROUTES: {
  readonly [Method in RemoteMethod]: (
    api: RemoteApi,
    ...params: Parameters<ControlProtocol[Method]>
  ) => Promise<ReturnType<ControlProtocol[Method]>>
} = {
  status: (api) => api.call('status'),
  top: (api) => api.call('top'),
  upstreams: (api) => api.list('upstreamList'),
  'upstream-drain': (api, { name }) => foundOrNot(api.call('upstreamDrain', { params: { node: name } })),
  'upstream-undrain': (api, { name }) => foundOrNot(api.call('upstreamUndrain', { params: { node: name } })),
  // Their names are those of the API in the process too.
  notices: async (api) => (await api.raw<{ items: ListedNotice[] }>('notices', { query: { limit: '1000' } })).items,
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
