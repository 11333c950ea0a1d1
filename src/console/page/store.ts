import { type Signal, signal } from '@preact/signals'
import type { AdminPermission } from '../../contract/admin-routes.ts'
import { followHash } from '../../ui/page/follow-hash.ts'
import { createStoreContext } from '../../ui/page/store-context.ts'
import { readTheme, type Theme } from '../../ui/theme.ts'
import { type AdminClient, createAdminClient } from '../client/admin-client.ts'
import type { SecretRecord, SessionRecord } from '../client/wire.ts'
import { LiveLog } from '../model/live.ts'
import { mayDo } from '../model/navigation.ts'
import { parseRoute, type Route } from '../model/route.ts'
import type { DialogSpec } from './ui/dialog-spec.ts'

/** What is shown once after a change: the secret, and the card for the customer. */
export type ShownSecret = { readonly title: string; readonly secret: SecretRecord }

/** `starting`: the session of the browser is not known yet. */
export type SessionState =
  | { readonly kind: 'starting' }
  | { readonly kind: 'signed-out'; readonly message: string }
  | { readonly kind: 'signed-in'; readonly session: SessionRecord }

export type Overlay = 'palette' | 'keys'

/** State shared by all views. */
export type Store = {
  readonly client: AdminClient
  readonly route: Signal<Route>
  readonly theme: Signal<Theme>
  readonly session: Signal<SessionState>
  readonly dialog: Signal<DialogSpec | undefined>
  readonly secret: Signal<ShownSecret | undefined>
  /** What a key has opened. */
  readonly overlay: Signal<Overlay | undefined>
  /** Figures since the page was opened. */
  readonly live: LiveLog
  /** The last change in words, for a few seconds. */
  readonly done: Signal<string>
  /** Counts changes: views load again. */
  readonly changes: Signal<number>
  readonly newKey: () => string
  signIn(token: string): Promise<string | undefined>
  signOut(): Promise<void>
  may(permission: AdminPermission): boolean
  /** Shows what was done and loads the views again. */
  report(message: string): void
}

const DONE_SHOWN_MS = 6000

export const { StoreProvider, useStore } = createStoreContext<Store>()

export function createStore(): Store {
  const session = signal<SessionState>({ kind: 'starting' })
  const dialog = signal<DialogSpec | undefined>(undefined)
  const secret = signal<ShownSecret | undefined>(undefined)
  const overlay = signal<Overlay | undefined>(undefined)
  const done = signal('')
  const changes = signal(0)
  const newKey = (): string => crypto.randomUUID()
  const client = createAdminClient({
    base: new URL('/', location.href),
    fetch: (input, init) => fetch(input, init),
    newKey,
    onSignedOut: () => leave('The session has ended. Sign in again.'),
  })
  let doneTimer: ReturnType<typeof setTimeout> | undefined

  /** A secret that is still shown stays: it cannot be shown again. */
  function leave(message: string): void {
    dialog.value = undefined
    overlay.value = undefined
    session.value = { kind: 'signed-out', message }
  }

  function report(message: string): void {
    changes.value += 1
    done.value = message
    clearTimeout(doneTimer)
    doneTimer = setTimeout(() => (done.value = ''), DONE_SHOWN_MS)
  }

  void client.session().then((result) => {
    if (result.ok) session.value = { kind: 'signed-in', session: result.value }
    else leave(result.status === 401 ? '' : result.error.message)
  })

  return {
    client,
    route: followHash(parseRoute),
    theme: signal(readTheme()),
    session,
    dialog,
    secret,
    overlay,
    live: new LiveLog(),
    done,
    changes,
    newKey,
    async signIn(token) {
      const result = await client.signIn(token)
      if (!result.ok) return [result.error.message, result.error.fix ?? ''].filter((text) => text !== '').join(' ')
      session.value = { kind: 'signed-in', session: result.value }
      return undefined
    },
    async signOut() {
      const result = await client.signOut()
      if (result.ok || result.status === 401) leave('')
      else report(`Still signed in: ${result.error.message}`)
    },
    may(permission) {
      const current = session.value
      return current.kind === 'signed-in' && mayDo(current.session.role, permission)
    },
    report,
  }
}
