import type { ReadonlySignal } from '@preact/signals'
import type { AdminRouteId } from '../../../contract/admin-routes.ts'
import { type Loaded, usePolledLoad } from '../../../ui/page/polled-load.ts'
import type { AdminError, AdminRequest } from '../../client/admin-client.ts'
import { useStore } from '../store.ts'

export type LoadedRecord<Value> = Loaded<Value, AdminError>

export type LoadOptions<Value> = AdminRequest & {
  /** Loads again after this time while the page is visible; a function gets what was loaded last. */
  readonly everyMs?: number | ((value: Value | undefined) => number)
  readonly isOff?: boolean
}

/** What a route responds with, loaded again after each change and in an interval. */
export function useLoad<Value>(
  id: AdminRouteId,
  options: LoadOptions<Value> = {},
): ReadonlySignal<LoadedRecord<Value>> {
  const { client, changes } = useStore()
  const { everyMs, isOff = false, params, query } = options
  return usePolledLoad<Value, AdminError>({
    load: (signal) =>
      client.call<Value>(id, {
        ...(params === undefined ? {} : { params }),
        ...(query === undefined ? {} : { query }),
        signal,
      }),
    subject: JSON.stringify([id, params]),
    selection: JSON.stringify([query, changes.value]),
    everyMs,
    isOff,
  })
}
