import { EXECUTION_ROUTES, EXECUTION_RPC_METHODS } from '../../contract/execution-routes.ts'
import {
  AVAILABLE_FILTERS,
  BLOCKED_BY_DEFAULT,
  DEFAULT_KINDS,
  METRIC_KINDS,
  type MetricKind,
  RAW_EVENTS,
  STREAM_CLOSE,
  STREAM_PATHS,
} from '../../contract/stream-events.ts'

/** The ways to ask that the documentation shows. */
export type Example = { readonly tool: 'curl' | 'wscat' | 'TypeScript'; readonly text: string }

export type RouteDoc = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly brief: string
  /** Needs no token where the service asks for one elsewhere. */
  readonly open: boolean
  /** The path with example values, relative to the service; undefined where there is nothing to try. */
  readonly tryPath: string | undefined
  /** What a POST sends. */
  readonly body: string | undefined
  readonly examples: readonly Example[]
}

/** Addresses the examples are written for, so that they work as they are copied. */
export type DocsLocation = {
  readonly http: string
  readonly ws: string
  readonly block: number
  readonly clientUrl: string
}

const RPC_BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",false]}'

export function routeDocs(position: DocsLocation): RouteDoc[] {
  return EXECUTION_ROUTES.map(({ method, path, brief, open }) => {
    const asked = path.replace(':number', String(position.block))
    const isPage = method === 'GET' && path === '/'
    const isText = path === '/metrics'
    const body = method === 'POST' ? RPC_BODY : undefined
    return {
      method,
      path,
      brief,
      open,
      body,
      tryPath: isPage ? undefined : asked.slice(1),
      examples: [
        {
          tool: 'curl' as const,
          text:
            body === undefined
              ? `curl -s ${position.http}${asked}`
              : `curl -s ${position.http}/ -H 'content-type: application/json' -d '${body}'`,
        },
        {
          tool: 'TypeScript' as const,
          text:
            body === undefined
              ? `const answer = await fetch('${position.http}${asked}')\nconsole.log(answer.status, await answer.${isText || isPage ? 'text' : 'json'}())`
              : `const answer = await fetch('${position.http}/', {\n  method: 'POST',\n  headers: { 'content-type': 'application/json' },\n  body: '${body}',\n})\nconsole.log(await answer.json())`,
        },
      ],
    }
  })
}

export const RPC_METHODS: readonly string[] = EXECUTION_RPC_METHODS
export const WS_PATHS: readonly string[] = STREAM_PATHS

export type KindDoc = { readonly kind: MetricKind; readonly when: string; readonly isDefault: boolean }

/** When each kind is sent. A kind without a sentence here does not compile. */
const WHEN: Readonly<Record<MetricKind, string>> = {
  TPS: 'Once per block, at its end.',
  ContentionData: 'Once per block, at its end. None for a block damaged by a gap.',
  TopAccesses: 'Every five seconds when something changed.',
  Lifecycle: 'When a block enters a stage.',
  ConflictData: 'Right after ContentionData, to those who ask for it.',
}

export function kindDocs(): KindDoc[] {
  const defaults: readonly string[] = DEFAULT_KINDS
  return METRIC_KINDS.map((kind) => ({ kind, when: WHEN[kind], isDefault: defaults.includes(kind) }))
}

/** Raw events that may be subscribed to; the rest only where the operator offers them. */
export function rawEventDocs(blocked: readonly string[] = BLOCKED_BY_DEFAULT): { name: string; isOffered: boolean }[] {
  return RAW_EVENTS.map((name) => ({ name, isOffered: !blocked.includes(name) }))
}

export const FILTERS: readonly string[] = AVAILABLE_FILTERS

/** Why the service closes a connection. A code without a sentence here does not compile. */
const CLOSE_WORDS: Readonly<Record<keyof typeof STREAM_CLOSE, string>> = {
  policy: 'Too slow for too long, or too many messages.',
  messageTooBig: 'A message larger than any subscription needs.',
  restart: 'The service restarts: come back, with the cursor.',
  unauthorized: 'The token ran out or was revoked.',
}

export function closeDocs(): { code: number; why: string }[] {
  return Object.entries(CLOSE_WORDS).map(([name, why]) => ({
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
