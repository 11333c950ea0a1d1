import { EXECUTION_ROUTES, EXECUTION_RPC_METHODS } from '../../contract/execution-routes.ts'
import {
  AVAILABLE_FILTERS,
  BLOCKED_BY_DEFAULT,
  DEFAULT_KINDS,
  FIGURE_KINDS,
  type FigureKind,
  RAW_EVENTS,
  STREAM_CLOSE,
  STREAM_PATHS,
} from '../../contract/stream-events.ts'

/** One example of a request. */
export type Example = { readonly tool: 'curl' | 'wscat' | 'TypeScript'; readonly text: string }

export type RouteDoc = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly brief: string
  /** Needs no token even where the service requires one. */
  readonly open: boolean
  /** The path with example values, relative to the service; undefined where it cannot be tried. */
  readonly tryPath: string | undefined
  /** The body of a POST. */
  readonly body: string | undefined
  readonly examples: readonly Example[]
}

/** Values for the examples, so that they work as copied. */
export type DocsLocation = {
  readonly http: string
  readonly ws: string
  readonly block: number
  readonly contract: string
  readonly clientUrl: string
}

const RPC_BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",false]}'

export function routeDocs(location: DocsLocation): RouteDoc[] {
  return EXECUTION_ROUTES.map(({ method, path, brief, open }) => {
    const query = path === '/v1/search' ? `?q=${location.block}` : ''
    const filledPath = path.replace(':number', String(location.block)).replace(':address', location.contract)
    const examplePath = `${filledPath}${query}`
    const isPage = method === 'GET' && path === '/'
    const isText = path === '/metrics'
    const body = method === 'POST' ? RPC_BODY : undefined
    return {
      method,
      path,
      brief,
      open,
      body,
      tryPath: isPage ? undefined : examplePath.slice(1),
      examples: [
        {
          tool: 'curl' as const,
          text:
            body === undefined
              ? `curl -s ${location.http}${examplePath}`
              : `curl -s ${location.http}/ -H 'content-type: application/json' -d '${body}'`,
        },
        {
          tool: 'TypeScript' as const,
          text:
            body === undefined
              ? `const response = await fetch('${location.http}${examplePath}')\nconsole.log(response.status, await response.${isText || isPage ? 'text' : 'json'}())`
              : `const response = await fetch('${location.http}/', {\n  method: 'POST',\n  headers: { 'content-type': 'application/json' },\n  body: '${body}',\n})\nconsole.log(await response.json())`,
        },
      ],
    }
  })
}

export const RPC_METHODS: readonly string[] = EXECUTION_RPC_METHODS
export const WS_PATHS: readonly string[] = STREAM_PATHS

export type KindDoc = { readonly kind: FigureKind; readonly when: string; readonly isDefault: boolean }

/** When each kind is sent. A missing kind does not compile. */
const WHEN: Readonly<Record<FigureKind, string>> = {
  TPS: 'At the end of a block, once three blocks in a row have ended. A block number counts once.',
  ContentionData:
    'At the end of every executed proposal, with its block_id; replaces_block_id names an earlier proposal of the same number. Not for a block with lost events.',
  TopAccesses: 'Every five seconds, if it changed.',
  Lifecycle: 'When a block enters a stage.',
  ConflictData: 'Directly after ContentionData, to clients that subscribe to it.',
}

export function kindDocs(): KindDoc[] {
  const defaults: readonly string[] = DEFAULT_KINDS
  return FIGURE_KINDS.map((kind) => ({ kind, when: WHEN[kind], isDefault: defaults.includes(kind) }))
}

/** Raw events, and whether this service offers them. */
export function rawEventDocs(blocked: readonly string[] = BLOCKED_BY_DEFAULT): { name: string; isOffered: boolean }[] {
  return RAW_EVENTS.map((name) => ({ name, isOffered: !blocked.includes(name) }))
}

export const FILTERS: readonly string[] = AVAILABLE_FILTERS

/** Why the service closes a connection. A missing code does not compile. */
const CLOSE_REASONS: Readonly<Record<keyof typeof STREAM_CLOSE, string>> = {
  policy: 'The client is too slow or sends too many messages.',
  messageTooBig: 'A message is too large.',
  restart: 'The service restarts: reconnect with the cursor.',
  unauthorized: 'The token has expired or was revoked.',
}

export function closeDocs(): { code: number; why: string }[] {
  return Object.entries(CLOSE_REASONS).map(([name, why]) => ({
    code: STREAM_CLOSE[name as keyof typeof STREAM_CLOSE],
    why,
  }))
}

export function streamExamples({ ws, clientUrl }: DocsLocation): Example[] {
  return [
    { tool: 'wscat', text: `npx wscat -c '${ws}/v1/ws?subscribe=TPS,Lifecycle'` },
    {
      tool: 'TypeScript',
      text: `// curl -sO ${clientUrl}
import { openExecutionStream } from './execution-stream.js'

const stream = openExecutionStream({ url: '${ws}', subscribe: ['TPS', 'Lifecycle'] })
for await (const event of stream) {
  if (event.kind === 'TPS') console.log('tps', event.data)
  if (event.kind === 'Lifecycle') console.log(event.data.block_number, event.data.to_stage)
  if (event.kind === 'gap') console.warn('missing:', event.reason, event.warning)
}`,
    },
    {
      tool: 'curl',
      text: `curl -sN --http1.1 ${ws.replace(/^ws/, 'http')}/v1/ws -H 'connection: upgrade' -H 'upgrade: websocket' -H 'sec-websocket-version: 13' -H 'sec-websocket-key: c2x1aWNlLWV4YW1wbGUhIQ==' --max-time 3 --output -`,
    },
  ]
}
