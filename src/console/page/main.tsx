import { useEffect } from 'preact/hooks'
import { startPage } from '../../ui/page/start-page.tsx'
import { Frame } from './frame.tsx'
import { followKeys } from './keyboard/follow-keys.ts'
import { KeysDialog } from './keyboard/keys-dialog.tsx'
import { Palette } from './keyboard/palette.tsx'
import { createStore, StoreProvider, useStore } from './store.ts'
import { ActionDialog } from './ui/dialog.tsx'
import { SecretDialog } from './ui/secret-dialog.tsx'
import { SignIn } from './views/sign-in.tsx'

function Console() {
  const store = useStore()
  const { session, dialog, secret, overlay } = store
  useEffect(() => followKeys(store), [])
  const { kind } = session.value
  return (
    <>
      {kind === 'starting' && (
        <main>
          <h1 class="loading">Sluice · console</h1>
        </main>
      )}
      {kind === 'signed-out' && <SignIn message={session.value.message} />}
      {kind === 'signed-in' && <Frame session={session.value.session} />}
      {dialog.value !== undefined && <ActionDialog key={dialog.value.title} spec={dialog.value} />}
      {overlay.value === 'palette' && <Palette />}
      {overlay.value === 'keys' && <KeysDialog />}
      {secret.value !== undefined && <SecretDialog shown={secret.value} />}
    </>
  )
}

startPage({ createStore, StoreProvider, page: <Console /> })
