import { isAddress } from './safe-text.ts'

/** What the address after `#` says. It can be shared, so it is taken as hostile: what does not parse means the live page. */
export type Route =
  | { readonly view: 'live' }
  | { readonly view: 'api' }
  | { readonly view: 'block'; readonly number: number }
  | { readonly view: 'contract'; readonly address: string }

export function parseRoute(hash: string): Route {
  const [name, value = ''] = hash.replace(/^#/, '').split('=', 2)
  if (name === 'api') return { view: 'api' }
  if (name === 'block' && /^\d{1,16}$/.test(value)) {
    const number = Number(value)
    if (Number.isSafeInteger(number)) return { view: 'block', number }
  }
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
      return `#block=${route.number}`
    case 'contract':
      return `#contract=${route.address}`
  }
}

/** A block number (decimal or 0x) or an address, as typed by somebody. */
export function parseSearch(text: string): Route | undefined {
  const wanted = text
    .trim()
    .replace(/^#/, '')
    .replaceAll(/[,_\s]/g, '')
  if (isAddress(wanted)) return { view: 'contract', address: wanted.toLowerCase() }
  if (!/^(\d{1,16}|0x[0-9a-f]{1,13})$/i.test(wanted)) return undefined
  const number = Number(wanted)
  return Number.isSafeInteger(number) ? { view: 'block', number } : undefined
}
