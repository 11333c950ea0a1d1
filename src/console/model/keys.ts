import type { ViewName } from './route.ts'

/** After `g`, the key of a view. */
export const VIEW_KEYS: Readonly<Record<ViewName, string>> = {
  overview: 'o',
  customers: 'c',
  subscriptions: 's',
  usage: 'u',
  billing: 'b',
  plans: 'p',
  connections: 'k',
  nodes: 'n',
  shreds: 'h',
  sender: 't',
  indexer: 'i',
  audit: 'a',
  notices: 'm',
  admins: 'r',
}

export type KeyAction =
  | { readonly kind: 'search' }
  | { readonly kind: 'palette' }
  | { readonly kind: 'keys' }
  | { readonly kind: 'view'; readonly view: ViewName }

export type KeyPress = {
  readonly key: string
  /** Ctrl, or Cmd on a Mac. */
  readonly isCommand: boolean
  readonly isAlt: boolean
  /** In a field, keys are text. */
  readonly isTyping: boolean
  readonly atMs: number
}

/** The second key of a sequence must follow within this time. */
const SEQUENCE_MS = 1500

/** What the keys mean: `/`, `?`, Ctrl+K, and `g` followed by the key of a view. */
export function createKeyReader(): (press: KeyPress) => KeyAction | undefined {
  let startedMs = Number.NEGATIVE_INFINITY
  return ({ key, isCommand, isAlt, isTyping, atMs }) => {
    const isSecond = atMs - startedMs < SEQUENCE_MS
    startedMs = Number.NEGATIVE_INFINITY
    if (isCommand) return key.toLowerCase() === 'k' && !isAlt ? { kind: 'palette' } : undefined
    if (isTyping || isAlt) return undefined
    if (isSecond) {
      const found = Object.entries(VIEW_KEYS).find(([, letter]) => letter === key)
      if (found !== undefined) return { kind: 'view', view: found[0] as ViewName }
    }
    if (key === 'g') startedMs = atMs
    if (key === '/') return { kind: 'search' }
    return key === '?' ? { kind: 'keys' } : undefined
  }
}
