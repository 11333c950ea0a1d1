import { render } from 'preact'
import { ThemeProvider } from '../../../ui/theme-button.tsx'
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

const root = document.getElementById('page')
if (root !== null) {
  root.replaceChildren()
  const store = createStore()
  render(
    <StoreProvider value={store}>
      <ThemeProvider value={store.theme}>
        <Page />
      </ThemeProvider>
    </StoreProvider>,
    root,
  )
}
