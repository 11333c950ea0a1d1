import { isAddress } from './safe-text.ts'

/** The route in the URL fragment. It is untrusted input: anything invalid means the live page. */
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

/** Parses user input: a block number (decimal or 0x) or an address. */
export function parseSearch(text: string): Route | undefined {
  const input = text
    .trim()
    .replace(/^#/, '')
    .replaceAll(/[,_\s]/g, '')
  if (isAddress(input)) return { view: 'contract', address: input.toLowerCase() }
  if (!/^(\d{1,16}|0x[0-9a-f]{1,13})$/i.test(input)) return undefined
  const number = Number(input)
  return Number.isSafeInteger(number) ? { view: 'block', number } : undefined
}
