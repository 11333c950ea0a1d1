import { request } from 'node:http'

/** The listeners of the measured Sluice, and the credentials of a customer of all products. */
export type WorkTarget = {
  /** `http://host:port` of each HTTP listener. */
  readonly http: Readonly<Record<'rpc' | 'sender' | 'execution' | 'indexer' | 'operator', string>>
  /** `host:port`. */
  readonly ws: string
  readonly grpc: string
  readonly token: string
  /** Token and database login of the indexer, as headers. */
  readonly indexerHeaders: Readonly<Record<string, string>>
}

/** One worst-case request, or one connection with its messages. */
export type WorkCase = {
  readonly name: string
  /** Resolves when the response is complete. The response does not matter: a refusal counts like a result. */
  run(target: WorkTarget): Promise<unknown>
}

/** Timeout of a case. */
const CASE_MS_MAX = 60_000

let sentCount = 0

/** Every request has its own source address, so that no per-address budget refuses it. */
export function nextAddress(): string {
  sentCount++
  return `127.${1 + ((sentCount >> 16) % 200)}.${(sentCount >> 8) % 256}.${1 + (sentCount % 250)}`
}

type Init = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}
type Received = { readonly status: number; readonly bytes: number; readonly text: string }

/** Bytes of a response that are kept; the rest is read and dropped. */
const TEXT_BYTES_MAX = 4096

/** Sends a request and reads its complete response. A closed connection counts as status 0. */
export function send(url: string, { method = 'GET', headers = {}, body }: Init = {}): Promise<Received> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const call = request(url, { method, headers: { ...headers, ...length }, localAddress: nextAddress(), agent: false })
    call.setTimeout(CASE_MS_MAX, () => call.destroy(new Error(`no response within ${CASE_MS_MAX} ms`)))
    call.on('response', (response) => {
      let bytes = 0
      let text = ''
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (text.length < TEXT_BYTES_MAX) text += chunk.toString('latin1')
      })
      response.on('close', () => resolve({ status: response.statusCode ?? 0, bytes, text }))
    })
    call.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === undefined) reject(error)
      else resolve({ status: 0, bytes: 0, text: error.code })
    })
    call.end(body)
  })
}

export function post(
  url: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<Received> {
  return send(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
}

/** JSON texts of about `bytes`, each the worst of its kind for a reader of JSON. */
export function worstJson(bytes: number): Readonly<Record<string, string>> {
  const fill = (unit: string) => unit.repeat(Math.max(1, Math.floor(bytes / unit.length)))
  const depth = Math.floor(bytes / 2)
  return {
    'many numbers': `[${fill('1,')}1]`,
    'many long numbers': `[${fill('1e-300,')}1]`,
    'many strings': `[${fill('"a",')}""]`,
    'many keys': `{${Array.from({ length: Math.floor(bytes / 9) }, (_, at) => `"${at}":0`).join(',')}}`,
    'one key often': `{${fill('"a":0,')}"a":0}`,
    'one string of escapes': `"${fill('\\u0041')}"`,
    'one string of quotes': `"${fill('\\"')}"`,
    'arrays within arrays': `${'['.repeat(depth)}${']'.repeat(depth)}`,
    'depth 30': `${'['.repeat(30)}${fill('[],')}[]${']'.repeat(30)}`,
    'open brackets': fill('['),
    'open objects': fill('{"a":'),
    blanks: `[${fill(' ')}]`,
    'an open string': `"${fill('a')}`,
  }
}
