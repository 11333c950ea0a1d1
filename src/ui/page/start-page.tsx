import type { Signal } from '@preact/signals'
import { type ComponentChild, type Provider, render } from 'preact'
import type { Theme } from '../theme.ts'
import { ThemeProvider } from '../theme-button.tsx'

type PageStart<Store> = {
  readonly createStore: () => Store
  readonly StoreProvider: Provider<Store | undefined>
  readonly page: ComponentChild
}

/** Renders the page with its store and its theme in the place of what its document shows until then. */
export function startPage<Store extends { readonly theme: Signal<Theme> }>(start: PageStart<Store>): void {
  const { createStore, StoreProvider, page } = start
  const root = document.getElementById('page')
  if (root === null) return
  root.replaceChildren()
  const store = createStore()
  render(
    <StoreProvider value={store}>
      <ThemeProvider value={store.theme}>{page}</ThemeProvider>
    </StoreProvider>,
    root,
  )
}
