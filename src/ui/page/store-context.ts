import { createContext, type Provider } from 'preact'
import { useContext } from 'preact/hooks'

export type StoreContext<Store> = {
  readonly StoreProvider: Provider<Store | undefined>
  /** The store of the page. */
  useStore(): Store
}

/** How the parts of a page reach the state that they share. */
export function createStoreContext<Store>(): StoreContext<Store> {
  const context = createContext<Store | undefined>(undefined)
  return {
    StoreProvider: context.Provider,
    useStore() {
      const store = useContext(context)
      if (store === undefined) throw new Error('there is no store above this component')
      return store
    },
  }
}
