import type { ReadonlySignal } from '@preact/signals'
import type { PageError } from '../../ui/page/page-error.ts'
import { type Loaded, usePolledLoad } from '../../ui/page/polled-load.ts'
import { useStore } from './store.ts'

type LoadOptions = {
  readonly query?: Readonly<Record<string, string>>
  /** Loads again after this time while the page is visible. */
  readonly everyMs?: number
  /** Another number loads again. */
  readonly round?: number
}

/** What an endpoint responds with. */
export function useLoad<Value>(
  path: string,
  { query = {}, everyMs, round = 0 }: LoadOptions = {},
): ReadonlySignal<Loaded<Value, PageError>> {
  const { client } = useStore()
  return usePolledLoad<Value, PageError>({
    load: (signal) => client.call<Value>(path, { query, signal }),
    subject: path,
    selection: JSON.stringify([query, round]),
    everyMs,
  })
}
