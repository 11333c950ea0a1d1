/** The views of the console, by their name in the URL fragment. */
const VIEWS = [
  'overview',
  'customers',
  'subscriptions',
  'usage',
  'billing',
  'connections',
  'nodes',
  'shreds',
  'sender',
  'indexer',
  'plans',
  'audit',
  'notices',
  'admins',
] as const
export type ViewName = (typeof VIEWS)[number]

/** `#/subscriptions/acme-prod?by=method`: a view, a record of it, and what is selected there. */
export type Route = {
  readonly view: ViewName
  readonly id?: string
  readonly query: Readonly<Record<string, string>>
}

const HASH_CHARACTERS_MAX = 1000

/** The fragment is untrusted input: what is invalid means the overview. */
export function parseRoute(hash: string): Route {
  if (hash.length > HASH_CHARACTERS_MAX) return { view: 'overview', query: {} }
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [name = '', ...rest] = path.split('/')
  const view = VIEWS.find((one) => one === name)
  if (view === undefined || rest.length > 1) return { view: 'overview', query: {} }
  const id = decode(rest[0] ?? '')
  const query = Object.fromEntries(new URLSearchParams(search))
  return { view, ...(id === '' ? {} : { id }), query }
}

export function printRoute({ view, id, query = {} }: Partial<Route> & { readonly view: ViewName }): string {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
  return `#/${view}${id === undefined ? '' : `/${encodeURIComponent(id)}`}${search}`
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
