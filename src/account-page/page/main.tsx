import { startPage } from '../../ui/page/start-page.tsx'
import { createStore, StoreProvider, useStore } from './store.ts'
import { AccountView } from './views/account.tsx'
import { SignIn } from './views/sign-in.tsx'

function Page() {
  const { session } = useStore()
  return session.value.kind === 'signed-in' ? (
    <AccountView account={session.value.account} />
  ) : (
    <SignIn error={session.value.error} />
  )
}

startPage({ createStore, StoreProvider, page: <Page /> })
