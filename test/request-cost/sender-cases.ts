import { randomBytes } from 'node:crypto'
import { post, send, type WorkCase, type WorkTarget, worstJson } from './work-case.ts'

/** A transaction has at most 1,232 bytes; these have the most signatures, keys or instructions of that size. */
const WIRE_BYTES = 1232
const SIGNATURES_MAX = 12

/** The open endpoint for transactions. */
export function senderCases(): WorkCase[] {
  const rpc = (name: string, params: string): WorkCase => ({
    name: `sender ${name}`,
    run: ({ http }) => post(http.sender, `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":${params}}`),
  })
  const raw = (name: string, wire: Buffer): WorkCase => ({
    name: `sender ${name}`,
    run: ({ http }) => post(`${http.sender}/api/v1/transactions`, wire, { 'content-type': 'application/octet-stream' }),
  })
  const get = (path: string): WorkCase => ({
    name: `sender GET ${path.slice(0, 40)}`,
    run: ({ http }: WorkTarget) => send(`${http.sender}${path}`),
  })
  return [
    rpc('a base64 transaction', JSON.stringify([manySignatures().toString('base64'), { encoding: 'base64' }])),
    rpc('a base58 text of the greatest length', JSON.stringify(['2'.repeat(1683)])),
    rpc('a base58 text far too long', JSON.stringify(['2'.repeat(60_000)])),
    raw('many signatures', manySignatures()),
    raw('many instructions', manyInstructions()),
    raw('random bytes', randomBytes(WIRE_BYTES)),
    raw('too many bytes', randomBytes(100_000)),
    ...Object.entries(worstJson(60_000)).flatMap(([name, json]) => [
      rpc(`params of ${name}`, json),
      { name: `sender a body of ${name}`, run: ({ http }: WorkTarget) => post(http.sender, json) },
    ]),
    {
      name: 'sender a batch',
      run: ({ http }) =>
        post(http.sender, `[${'{"jsonrpc":"2.0","id":1,"method":"getTipAccounts"},'.repeat(999)}{"jsonrpc":"2.0"}]`),
    },
    get('/ping'),
    get(`/v1/transactions/${'1'.repeat(88)}`),
    get(`/v1/transactions/${'1'.repeat(15_000)}`),
    get('/v1/tip-accounts'),
  ]
}

function manySignatures(): Buffer {
  const keys = Buffer.concat(Array.from({ length: SIGNATURES_MAX }, () => randomBytes(32)))
  const signatures = randomBytes(64 * SIGNATURES_MAX)
  const message = [Buffer.from([SIGNATURES_MAX, 0, 0, SIGNATURES_MAX]), keys, randomBytes(32), Buffer.from([0])]
  return Buffer.concat([Buffer.from([SIGNATURES_MAX]), signatures, ...message]).subarray(0, WIRE_BYTES)
}

function manyInstructions(): Buffer {
  const head = [Buffer.from([1]), randomBytes(64), Buffer.from([1, 0, 1, 2]), randomBytes(64), randomBytes(32)]
  const count = 300
  // A compact-u16 of two bytes, then instructions without accounts and data.
  const instructions = Buffer.concat(Array.from({ length: count }, () => Buffer.from([1, 0, 0])))
  return Buffer.concat([...head, Buffer.from([(count & 0x7f) | 0x80, count >> 7]), instructions])
}
