import { isAddress } from '../../ui/safe-text.ts'

/** The route in the URL fragment. It is untrusted input: anything invalid means the live page. */
export type Route =
  | { readonly view: 'live' }
  | { readonly view: 'api' }
  /** `txn`: index of a transaction of the block. */
  | { readonly view: 'block'; readonly number: number; readonly txn?: number }
  | { readonly view: 'contract'; readonly address: string }

export function parseRoute(hash: string): Route {
  const [name, value = ''] = hash.replace(/^#/, '').split('=', 2)
  if (name === 'api') return { view: 'api' }
  const [, block, txn] = (name === 'block' ? /^(\d{1,16})(?:\/(\d{1,6}))?$/.exec(value) : null) ?? []
  if (block !== undefined && Number.isSafeInteger(Number(block)))
    return { view: 'block', number: Number(block), ...(txn === undefined ? {} : { txn: Number(txn) }) }
  if (name === 'contract' && isAddress(value)) return { view: 'contract', address: value.toLowerCase() }
  return { view: 'live' }
}

export function printRoute(route: Route): string {
  switch (route.view) {
    case 'live':
      return '#'
    case 'api':
      return '#api'
    case 'block':
      return `#block=${route.number}${route.txn === undefined ? '' : `/${route.txn}`}`
    case 'contract':
      return `#contract=${route.address}`
  }
}
