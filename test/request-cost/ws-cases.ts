import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import { nextAddress, type WorkCase, worstJson } from './work-case.ts'

const KINDS = ['account', 'block', 'logs', 'program', 'root', 'signature', 'slot', 'slotsUpdates', 'vote']
/** A message has at most 4 KiB. */
const PARAMS_BYTES = 3_900
/** How long a connection is read after its messages. */
const STREAM_MS = 60

/** PubSub: every kind of subscription, the largest messages, and as many as a connection may send at once. */
export function wsCases(): WorkCase[] {
  const worst = Object.entries(worstJson(PARAMS_BYTES))
  const call = (method: string, params: string, id = 1) =>
    `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`
  const account = '"So11111111111111111111111111111111111111112"'
  return [
    ...KINDS.flatMap((kind) =>
      worst.map(([name, json]) => messages(`ws ${kind}Subscribe with ${name}`, [call(`${kind}Subscribe`, json)])),
    ),
    ...worst.map(([name, json]) => messages(`ws a message of ${name}`, [json])),
    messages('ws a batch', [`[${Array.from({ length: 50 }, (_, at) => call('getSlot', '[]', at)).join(',')}]`]),
    messages(
      'ws many subscriptions',
      Array.from({ length: 1_000 }, (_, at) =>
        call('accountSubscribe', `[${account},{"dataSlice":{"offset":${at},"length":1}}]`, at),
      ),
    ),
    messages(
      'ws many calls',
      Array.from({ length: 1_000 }, (_, at) => call('getBalance', `[${account}]`, at)),
    ),
    // 100 items each, the maximum of the plan. Together they are one read.
    messages(
      'ws many batches of invalid items',
      Array.from({ length: 313 }, () => `[${'1,'.repeat(99)}1]`),
    ),
    messages('ws binary bytes', [Buffer.alloc(4_000, 0xff)]),
    { name: 'ws handshake without a token', run: ({ ws }) => open(`ws://${ws}/`, {}, []) },
    {
      name: 'ws handshake with a long query',
      run: ({ ws }) => open(`ws://${ws}/?${'ticket=a&'.repeat(1_500)}`, {}, []),
    },
  ]
}

function messages(name: string, texts: readonly (string | Buffer)[]): WorkCase {
  return { name, run: ({ ws, token }) => open(`ws://${ws}/`, { 'x-token': token }, texts) }
}

function open(url: string, headers: Record<string, string>, texts: readonly (string | Buffer)[]): Promise<void> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, { headers, localAddress: nextAddress() })
    let timer: NodeJS.Timeout | undefined
    // In one write, as soon as the connection is read: the case before may have caused a pause.
    socket.on('open', () => socket.send('{"jsonrpc":"2.0","id":0,"method":"getRateLimits"}'))
    socket.once('message', () => {
      const { _socket: raw } = socket as unknown as { _socket: Socket }
      raw.cork()
      for (const text of texts) socket.send(text)
      raw.uncork()
      timer = setTimeout(() => socket.terminate(), STREAM_MS)
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
