import { type Signal, signal } from '@preact/signals'
import type { PageError } from '../../ui/page/page-error.ts'
import { createStoreContext } from '../../ui/page/store-context.ts'
import { readTheme, type Theme } from '../../ui/theme.ts'
import { type AccountClient, createAccountClient } from '../client.ts'
import type { AccountRecord } from '../wire.ts'

export type AccountSession =
  | { readonly kind: 'signed-out'; readonly error: PageError | undefined }
  | { readonly kind: 'signed-in'; readonly account: AccountRecord }

/** State shared by all parts of the page. The token is a variable in it and nowhere else: a reload forgets it. */
export type AccountStore = {
  readonly client: AccountClient
  readonly theme: Signal<Theme>
  readonly session: Signal<AccountSession>
  readonly token: () => string
  signIn(token: string): Promise<PageError | undefined>
  signOut(): void
  /** Loads the account again. */
  refresh(): Promise<void>
}

export const { StoreProvider, useStore } = createStoreContext<AccountStore>()

export function createStore(): AccountStore {
  const session = signal<AccountSession>({ kind: 'signed-out', error: undefined })
  let token = ''
  const leave = (error: PageError | undefined): void => {
    token = ''
    session.value = { kind: 'signed-out', error }
  }
  const client = createAccountClient({
    base: new URL('/', location.href),
    fetch: (input, init) => fetch(input, init),
    token: () => token,
    onRefused: leave,
  })

  async function load(): Promise<PageError | undefined> {
    const result = await client.call<AccountRecord>('v1/account')
    if (!result.ok) return result.error
    session.value = { kind: 'signed-in', account: result.value }
    return undefined
  }

  return {
    client,
    theme: signal(readTheme()),
    session,
    token: () => token,
    async signIn(given) {
      token = given
      const error = await load()
      if (error !== undefined) leave(error)
      return error
    },
    signOut: () => leave(undefined),
    async refresh() {
      await load()
    },
  }
}
